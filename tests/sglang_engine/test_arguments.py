from pathlib import Path

from specserve.sglang_engine.arguments import Argument, File, ServerArguments, Variable

ARGUMENTS = ServerArguments(
    release="0.5.23",
    arguments=(
        Argument(field="model_path", value="/models/a b", key="model.path"),
        Argument(field="trust_remote_code", value=True, key="model.trust_remote_code"),
        Argument(field="cuda_graph_bs_decode", value=(1, 2), key="cuda_graph.batch_sizes"),
        Argument(field="a_config", value=File("a.json", "{}"), key="policy.kind"),
        Argument(field="watchdog_timeout", value=1.5, key="scheduler.step_limit_seconds"),
    ),
    environment=(Variable(name="A", value="1", key="policy.while_off"),),
)


def test_a_command_line_has_switches_lists_and_files() -> None:
    assert [
        *("--model-path", "/models/a b", "--trust-remote-code"),
        *("--cuda-graph-bs-decode", "1", "2", "--a-config", "/run/a.json"),
        *("--watchdog-timeout", "1.5"),
    ] == ARGUMENTS.command_line(Path("/run"))


def test_files_are_known_by_their_names() -> None:
    assert {"a.json": "{}"} == ARGUMENTS.files


def test_settings_are_known_by_sglangs_names() -> None:
    assert (1, 2) == ARGUMENTS.settings["cuda_graph_bs_decode"]


def test_the_text_has_a_line_for_each_with_its_key() -> None:
    lines = str(ARGUMENTS).splitlines()

    assert 6 == len(lines)
    assert "--trust-remote-code         model.trust_remote_code" == lines[1]
    assert "A=1                         policy.while_off" == lines[-1]
