"""A change of configuration by its effect: two subjects side by side, or all of a pull request."""

from specserve.review.diff_command import diff_subjects
from specserve.review.review_command import review_change

__all__ = ["diff_subjects", "review_change"]
