"""`captime dashboard`: a local web page that shows a campaign while it runs."""

import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from captime.cli.recorded import LedgerArgument, ledger_of, say_missing
from captime.errors import MissingExtra
from captime.ledger import LedgerReader


def dashboard_command(
    ledger: LedgerArgument,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 0,
    host: Annotated[str, typer.Option(help="Where to listen; this machine only by default.")] = "127.0.0.1",
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS certificate, for hosts that others can reach.")
    ] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key.")] = None,
    public: Annotated[
        bool, typer.Option("--i-know-it-is-public", help="Listen where others can reach it; needs TLS.")
    ] = False,
) -> None:
    """Show a campaign on a local web page that follows it. Only reads; Ctrl-C ends it.

    The address that is printed gives access to the page: keep it to yourself.
    """
    if find_spec("starlette") is None or find_spec("uvicorn") is None:
        raise MissingExtra("the dashboard", "dashboard")
    from captime.dashboard.server import Address, serve  # noqa: PLC0415 (needs an optional extra)

    ledger = ledger_of(ledger)
    # A file that is no ledger is refused before anything listens.
    with LedgerReader(ledger) as reader:
        say_missing(reader.missing)

    def announce(address: str, good_once: str) -> None:
        typer.echo(address)
        typer.echo("captime: Ctrl-C ends the dashboard, not the campaign", err=True)
        if open_browser:
            # Every user of this machine sees a browser's arguments in the list of processes.
            webbrowser.open(good_once)

    serve(ledger, Address(host, port, certificate, key, public), announce)
