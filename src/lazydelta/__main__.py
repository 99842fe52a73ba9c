"""`python -m lazydelta` is the command `lazydelta`."""

from lazydelta.cli.start import main

if __name__ == "__main__":
    main()
