"""The command line as `python -m dgsr`."""

from dgsr.cli import main

if __name__ == "__main__":
    main()
