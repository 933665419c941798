"""The signature of every public callable, as ``tests/data/signatures.txt`` holds it.

``python tests/_signatures.py`` writes the file anew and says what users must change. A
parameter is one line, so that the diff of a commit shows an added one as an added line,
and a changed or removed one as a removed line.
"""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path

PATH = Path(__file__).parent / "data" / "signatures.txt"
REQUIRED = "(required)"
# The lines between which the parameters change their kind, as in a `def` statement.
POSITIONAL_ONLY_ENDS = "/"
KEYWORD_ONLY_BEGINS = "*"


def public_modules():
    """Return the names of all modules that users import from."""
    package = import_module("skcalib")
    submodules = [f"skcalib.{name}" for name in package._SUBMODULES]
    # The bases for recalibrators of one's own; its other names are those of `skcalib`.
    if "skcalib.recalibrators" not in submodules:
        submodules.append("skcalib.recalibrators")
    return ["skcalib", *submodules]


def public_callables():
    """Return every public function, class and method, by its path.

    A method counts if the package itself defines it, in the class or in a base.
    """
    found = {}
    for module_name in public_modules():
        module = import_module(module_name)
        for name in module.__all__:
            public = getattr(module, name)
            if not callable(public) or public in found.values():
                continue
            path = f"{module_name}.{name}"
            found[path] = public
            if inspect.isclass(public):
                for method_name in _method_names(public):
                    method = getattr(public, method_name)
                    found[f"{path}.{method_name}"] = method
    return found


def _method_names(public_class):
    for name in sorted(dir(public_class)):
        if name.startswith("_"):
            continue
        method = getattr(public_class, name)
        module = getattr(method, "__module__", None) or ""
        if callable(method) and module.partition(".")[0] == "skcalib":
            yield name


def parameter_lines(public):
    """Return the parameters of a callable, one text each, in their order."""
    lines = []
    parameters = list(inspect.signature(public).parameters.values())
    if parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    before = None
    for parameter in parameters:
        if before is not None and before.kind == parameter.POSITIONAL_ONLY:
            if parameter.kind != parameter.POSITIONAL_ONLY:
                lines.append(POSITIONAL_ONLY_ENDS)
        if parameter.kind == parameter.KEYWORD_ONLY:
            if before is None or before.kind not in (
                parameter.KEYWORD_ONLY,
                parameter.VAR_POSITIONAL,
            ):
                lines.append(KEYWORD_ONLY_BEGINS)
        lines.append(_parameter_line(parameter))
        before = parameter
    return lines


def _parameter_line(parameter):
    if parameter.kind == parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    if parameter.kind == parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is parameter.empty:
        return f"{parameter.name} {REQUIRED}"
    return f"{parameter.name} = {_default_text(parameter.default)}"


def _default_text(default):
    """Return the text of a default: functions by name, and no addresses in memory."""
    if inspect.isfunction(default) or inspect.isclass(default):
        return f"{default.__module__}.{default.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(default)).replace("\n", " ")


def found_signatures():
    """Return the lines of each public callable of the package as it is now."""
    return {
        path: parameter_lines(public) for path, public in public_callables().items()
    }


def stored_signatures():
    """Return the lines of each public callable as the file holds them."""
    signatures = {}
    lines = []
    for line in PATH.read_text("utf-8").splitlines():
        if line.startswith("    "):
            lines.append(line.strip())
        else:
            lines = []
            signatures[line] = lines
    return signatures


def write(signatures):
    lines = []
    for path in sorted(signatures):
        lines.append(path)
        lines.extend(f"    {line}" for line in signatures[path])
    PATH.write_text("\n".join(lines) + "\n", "utf-8")


def differences(stored, found):
    """Return two lists of sentences: what breaks the code of users, and what is new."""
    breaking = []
    added = []
    for path in sorted(stored.keys() | found.keys()):
        if path not in found:
            breaking.append(f"{path} is gone")
        elif path not in stored:
            added.append(f"{path} is new")
        else:
            _compare(path, stored[path], found[path], breaking, added)
    return breaking, added


def _compare(path, stored, found, breaking, added):
    if stored == found:
        return
    for line in stored:
        if line not in found:
            breaking.append(f"{path}: `{line}` is gone or has changed")
    for line in found:
        if line in stored:
            continue
        if line.endswith(REQUIRED):
            breaking.append(f"{path}: `{line}` is new, and calls must name it")
        else:
            added.append(f"{path}: `{line}` is new")
    stored_in_both = [line for line in stored if line in found]
    found_in_both = [line for line in found if line in stored]
    if stored_in_both != found_in_both:
        breaking.append(f"{path}: parameters have another order")
    elif _positional(found)[: len(_positional(stored))] != _positional(stored):
        breaking.append(f"{path}: other parameters can be given by position")


def _positional(lines):
    """Return the lines of the parameters that a call may give without their names."""
    if KEYWORD_ONLY_BEGINS in lines:
        return lines[: lines.index(KEYWORD_ONLY_BEGINS)]
    return [line for line in lines if not line.startswith("*")]


def main():
    stored = stored_signatures() if PATH.exists() else {}
    found = found_signatures()
    breaking, added = differences(stored, found)
    write(found)
    for sentence in added:
        print(f"added: {sentence}")
    for sentence in breaking:
        print(f"BREAKS THE CODE OF USERS: {sentence}")
    if not breaking and not added:
        print("nothing has changed")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
