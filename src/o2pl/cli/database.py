"""The database of a command, and which application of it is meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from o2pl.errors import InvalidInput
from o2pl.extras import require_extra

if TYPE_CHECKING:
    from o2pl.serving.applications import Application
    from o2pl.serving.store import Store


@contextmanager
def opened_database(database: str | None, new: bool = False) -> Iterator[Store]:
    """Open the database for a command. new: create it if it does not exist."""
    require_extra("serve", "the decision service")
    from o2pl.serving.database import where_is
    from o2pl.serving.store import Store

    where = where_is(database)
    if not new and "://" not in str(where) and not Path(where).exists():
        raise InvalidInput(f"database: found no file {str(where)!r}, expected a database made by `o2pl serve`")
    with Store.open(where) as store:
        yield store


def chosen(store: Store, name: str | None) -> Application:
    """Return the application of this name, or the only one."""
    if name is not None:
        return store.application(name)
    found = store.applications()
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise InvalidInput(f"app: found {len(found)} applications ({names}), expected one; choose with --app NAME")
    return found[0]


def asked_of_database(store: Store, name: str | None) -> list[Application]:
    """Return the application of this name; None: all."""
    return store.applications() if name is None else [store.application(name)]


def open_database_store(database: str | None) -> tuple[Store, str]:
    """Return the opened store and its URL."""
    from o2pl.serving.database import StoreUnavailable, check_whole, damaged, where_is
    from o2pl.serving.store import Store

    place = str(where_is(database))
    try:
        with ExitStack() as undo:
            store = undo.enter_context(Store.open(place))
            check_whole(store.engine)
            undo.pop_all()
        return store, place
    except StoreUnavailable as error:
        if "malformed" in str(error):
            raise damaged(place, str(error)) from None
        raise InvalidInput(f"database: cannot be opened ({error})") from None
