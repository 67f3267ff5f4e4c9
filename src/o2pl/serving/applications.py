"""Applications in a store, their keys and settings."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from o2pl.errors import InvalidInput, nearest
from o2pl.serving import versions
from o2pl.serving.schema import applications, keys
from o2pl.serving.settings import Kind, Settings, changed, check, stored, to_json

_DAY = 86400.0
ROLES = ("write", "read")  # write: rank, reward, settings; read: dashboard, summaries, exports


@dataclass(frozen=True)
class Application:
    """One row of `applications`."""

    id: int
    name: str
    kind: Kind
    settings: Settings
    pinned: int | None  # served model version; None: the newest
    created_at: float


class NewApplication(NamedTuple):
    """A new application. Its keys are shown only once: the store has only their digests."""

    id: int
    write_key: str
    read_key: str


class Role(NamedTuple):
    """The application and role of a key."""

    application_id: int
    role: str


def all_applications(connection: Connection) -> list[Application]:
    return [_application(row) for row in connection.execute(select(applications).order_by(applications.c.id))]


def find_application(connection: Connection, which: str | int) -> Application:
    """Return the application with this name or number."""
    column = applications.c.id if isinstance(which, int) else applications.c.name
    row = connection.execute(select(applications).where(column == which)).one_or_none()
    if row is None:
        names = connection.scalars(select(applications.c.name)).all()
        hint = nearest(str(which), names) if names else "expected an application made by `o2pl app add`"
        raise InvalidInput(f"application: found {which!r}, {hint}")
    return _application(row)


def _application(row: Any) -> Application:
    return Application(row.id, row.name, Kind(row.kind), stored(row.settings), row.pinned, row.created_at)


def add_application(connection: Connection, name: str, kind: Kind, settings: Settings) -> NewApplication:
    if not name or len(name) > 200 or not name.isprintable():
        raise InvalidInput(f"application: found the name {name!r}, expected 1 to 200 characters")
    check(settings, kind)
    values = {"name": name, "kind": kind.value, "settings": to_json(settings), "created_at": time.time()}
    try:
        made: Any = connection.execute(insert(applications).values(values)).inserted_primary_key
    except IntegrityError:
        raise InvalidInput(f"application: found {name!r}, which already exists; expected a new name") from None
    number = int(made[0])
    return NewApplication(number, add_key(connection, number, "write"), add_key(connection, number, "read"))


def change_settings(
    connection: Connection, application_id: int, values: dict[str, Any], only_if: Callable[[Settings], bool]
) -> Settings | None:
    """Replace some settings, in JSON form. only_if: whether the stored ones may be changed. None: they may not.

    Reading and writing is one transaction: of two changes at the same time, none is lost.
    """
    row = select(applications).where(applications.c.id == application_id).with_for_update()
    known = _application(connection.execute(row).one())
    if not only_if(known.settings):
        return None
    made = changed(known.settings, values, known.kind)
    if made.control_version and made.control_version != known.settings.control_version:
        versions.model_body(connection, application_id, made.control_version)
    put_settings(connection, application_id, made)
    return made


def put_settings(connection: Connection, application_id: int, settings: Settings) -> None:
    check(settings, find_application(connection, application_id).kind)
    connection.execute(
        update(applications).where(applications.c.id == application_id).values(settings=to_json(settings))
    )


# -- keys


def add_key(connection: Connection, application_id: int, role: str, days: float | None = None) -> str:
    """Add a key and return it. Existing keys stay valid. days: until it expires; None: never."""
    if role not in ROLES:
        raise InvalidInput(f"role: found {role!r}, {nearest(role, ROLES)}")
    key, now = secrets.token_urlsafe(32), time.time()
    ends = None if days is None else now + days * _DAY
    values = {"digest": digest(key), "application_id": application_id, "role": role, "created_at": now}
    values["expires_at"] = ends
    connection.execute(insert(keys).values(values))
    return key


def replace_keys(connection: Connection, application_id: int, role: str, but: str, days: float = 0.0) -> int:
    """Let all keys of a role except one expire in so many days. 0: delete them. Returns their number."""
    others = (keys.c.application_id == application_id, keys.c.role == role, keys.c.digest != digest(but))
    if days <= 0:
        return connection.execute(keys.delete().where(*others)).rowcount
    ends = time.time() + days * _DAY
    sooner = or_(keys.c.expires_at.is_(None), keys.c.expires_at > ends)
    return connection.execute(update(keys).where(*others, sooner).values(expires_at=ends)).rowcount


def keys_of(connection: Connection, application_id: int) -> Sequence[Any]:
    """Return (digest, role, created_at, expires_at) of an application's keys, oldest first."""
    query = select(keys.c.digest, keys.c.role, keys.c.created_at, keys.c.expires_at).where(
        keys.c.application_id == application_id
    )
    return connection.execute(query.order_by(keys.c.created_at, keys.c.digest)).all()


def revoke_key(connection: Connection, application_id: int, start: str) -> str:
    """Delete the key whose digest starts like this. Returns its role."""
    found = [row for row in keys_of(connection, application_id) if start and row.digest.startswith(start)]
    if len(found) != 1:
        raise InvalidInput(f"key: found {len(found)} keys called {start!r}, expected one from `o2pl app keys`")
    connection.execute(keys.delete().where(keys.c.digest == found[0].digest))
    return str(found[0].role)


def all_keys(connection: Connection) -> Sequence[Any]:
    """Return (digest, application_id, role, expires_at) of all keys."""
    return connection.execute(select(keys.c.digest, keys.c.application_id, keys.c.role, keys.c.expires_at)).all()


def digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def is_valid(expires_at: float | None) -> bool:
    return expires_at is None or time.time() < expires_at


def role_among(known: Iterable[Any], key: str) -> Role | None:
    """Find the role of a key. All digests are compared in constant time, to prevent timing attacks."""
    asked, found = digest(key), None
    for known_digest, application_id, role, ends in known:
        if is_valid(ends) and hmac.compare_digest(known_digest, asked):
            found = Role(application_id, role)
    return found
