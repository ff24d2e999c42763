"""`python -m aotdyn`: the command line without the console script."""

from aotdyn.cli import main

if __name__ == "__main__":
    main(prog_name="aotdyn")
