"""The command line's serving run, on the scripted worker: `scripted_run.py LIE OVERRIDES...`."""

import sys
from pathlib import Path

from specserve.config.load import load_run
from specserve.errors import SpecserveError
from specserve.log import configure
from specserve.serve import serve

SCRIPTED = Path(__file__).parent.parent / "worker" / "scripted_worker.py"


def main(lie: str, overrides: list[str]) -> int:
    try:
        run = load_run(overrides, [])
        configure(run.config.logging)
        return serve(
            run.config,
            overrides=overrides,
            run_directory=run.run_directory,
            worker_command=(sys.executable, str(SCRIPTED), lie),
        )
    except SpecserveError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
