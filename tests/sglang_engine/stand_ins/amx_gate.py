"""A plugin of SGLang, for tests: lets any CPU use the attention back-end meant for AMX."""

from sglang.srt.runtime_context import override_platform


def open_gate() -> None:
    """Report AMX to SGLang's argument handling, which otherwise replaces `intel_amx`.

    The layers ask the machine itself (`cpu_has_amx_support`), and stay on plain torch.
    """
    override_platform(has_amx=True).install()
