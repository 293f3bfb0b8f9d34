"""`specserve check`: everything that can be known before a GPU is touched."""

from specserve.check.command import Answer, check
from specserve.check.run import Report, check_run, report_on

__all__ = ["Answer", "Report", "check", "check_run", "report_on"]
