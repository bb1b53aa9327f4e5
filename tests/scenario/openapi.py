# SPDX-License-Identifier: MIT
"""docs/openapi.yaml, and a validator for the part of JSON Schema that it uses.

    doc = Document()                      # raises Skip without PyYAML
    doc.check()                           # it is a well-formed document
    doc.operations()                      # {("GET", "/api/v1/status"): {...}}
    doc.validate("Status", value)         # by a schema, named or given

A keyword that the validator does not know is an error: nothing is unchecked by
mistake. A member that no schema describes is an error, too, unless
additionalProperties permits it.
"""

import datetime
import re

import tap

PATH = tap.ROOT / "docs" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "patch")

# Keywords that say nothing about a value.
NOTES = {"description", "examples", "default", "title"}
# Members of the objects of a document: those that must and may be there.
DOCUMENT = ("openapi info paths", "servers security tags components")
INFO = ("title version", "summary description license")
OPERATION = (
    "operationId tags summary responses",
    "description parameters requestBody security",
)
PARAMETER = ("name in description schema", "required")
RESPONSE = ("description", "headers content")
HEADER = ("description schema", "required")
BODY = ("content description", "required")
COMPONENTS = ("schemas", "securitySchemes parameters responses")
TYPES = {
    "array": list,
    "boolean": bool,
    "integer": int,
    "null": type(None),
    "number": (int, float),
    "object": dict,
    "string": str,
}


class Invalid(Exception):
    """A value does not fit its schema; the text says where."""


def require(good, where, what):
    """Complain about a place unless it is good."""
    if not good:
        raise Invalid(f"{where}: {what}")


def is_type(value, name):
    """Whether a value is of a type of JSON."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES[name])


def check_members(value, where, members):
    """Require the members of an object of a document."""
    must, may = (set(words.split()) for words in members)
    require(isinstance(value, dict), where, "no object")
    require(must <= set(value), where, f"lacks {must - set(value)}")
    more = set(value) - must - may
    require(not more, where, f"has {more}")


class Document:
    """The document."""

    def __init__(self):
        try:
            import yaml  # pylint: disable=import-outside-toplevel
        except ImportError:
            raise tap.Skip("no PyYAML") from None
        self.tree = yaml.safe_load(PATH.read_text("utf-8"))
        self.used = set()  # references that were followed

    # --- its parts ------------------------------------------------------------

    def follow(self, ref):
        """What a reference names."""
        found = self.tree
        require(ref.startswith("#/"), ref, "not of this document")
        for word in ref[2:].split("/"):
            require(word in found, ref, "names nothing")
            found = found[word]
        self.used.add(ref)
        return found

    def plain(self, value):
        """An object, or what it refers to."""
        while "$ref" in value:
            value = self.follow(value["$ref"])
        return value

    def schema(self, name):
        """A schema by its name."""
        return self.follow(f"#/components/schemas/{name}")

    def members(self, schema):
        """The properties of a schema and of those that it is made of, and the
        names of those that are required."""
        schema = self.plain(schema)
        properties = dict(schema.get("properties", {}))
        needed = set(schema.get("required", ()))
        for part in schema.get("allOf", ()):
            more, names = self.members(part)
            properties = {**properties, **more}
            needed |= names
        return properties, needed

    def operations(self):
        """All operations, by method and path, with the parameters of both."""
        found = {}
        for path, item in self.tree["paths"].items():
            for method in METHODS:
                if method in item:
                    operation = dict(item[method])
                    operation["parameters"] = [
                        self.plain(one)
                        for one in item.get("parameters", [])
                        + operation.get("parameters", [])
                    ]
                    found[method.upper(), path] = operation
        return found

    # --- whether it is well-formed --------------------------------------------

    def check(self):
        """Require a document of OpenAPI 3.1 without loose ends."""
        tree = self.tree
        check_members(tree, "document", DOCUMENT)
        check_members(tree["info"], "info", INFO)
        require(re.fullmatch(r"3\.1\.\d+", tree["openapi"]), "openapi", "not 3.1")
        check_members(tree["components"], "components", COMPONENTS)
        self._check_refs(tree, "document")
        self._check_security(tree.get("security", []), "document")
        ids = []
        for path, item in tree["paths"].items():
            require(path.startswith("/"), path, "no path")
            require(set(item) <= {*METHODS, "parameters"}, path, f"has {set(item)}")
            for method in METHODS:
                if method in item:
                    self._check_operation(f"{method} {path}", item[method], path)
                    ids.append(item[method]["operationId"])
        require(len(ids) == len(set(ids)), "operationId", f"not unique: {ids}")
        for operation in self.operations().values():
            for one in operation["parameters"]:
                check_members(one, f"parameter {one.get('name')}", PARAMETER)
                self.check_schema(one["schema"], one["name"])
        for name, one in tree["components"]["schemas"].items():
            self.check_schema(one, name)
        for name, one in tree["components"]["responses"].items():
            self._check_response(one, name)
        for kind in ("schemas", "parameters", "responses"):
            for name in tree["components"][kind]:
                ref = f"#/components/{kind}/{name}"
                require(ref in self.used, ref, "is not used")

    def _check_refs(self, value, where):
        """Follow all references, of examples, too."""
        if isinstance(value, dict):
            if "$ref" in value:
                self.follow(value["$ref"])
            for name, one in value.items():
                # Such as `on`, which is true in YAML 1.1.
                require(isinstance(name, str), where, f"{name} needs quotes")
                self._check_refs(one, f"{where}/{name}")
        elif isinstance(value, list):
            for one in value:
                self._check_refs(one, where)

    def _check_security(self, value, where):
        schemes = self.tree["components"]["securitySchemes"]
        for one in value:
            require(set(one) <= set(schemes), where, f"no such scheme: {one}")

    def _check_operation(self, where, operation, path):
        check_members(operation, where, OPERATION)
        self._check_security(operation.get("security", []), where)
        tags = {tag["name"] for tag in self.tree["tags"]}
        require(set(operation["tags"]) <= tags, where, "has unknown tags")
        full = self.operations()[where.split()[0].upper(), path]
        names = [one["name"] for one in full["parameters"] if one["in"] == "path"]
        wanted = re.findall(r"\{(\w+)\}", path)
        require(sorted(names) == sorted(wanted), where, f"{names} in the path")
        for one in full["parameters"]:
            require(one["in"] in ("path", "query", "header"), where, one["in"])
            good = one["in"] != "path" or one.get("required") is True
            require(good, where, f"{one['name']} is not required")
        if "requestBody" in operation:
            body = self.plain(operation["requestBody"])
            check_members(body, where, BODY)
            self._check_content(body["content"], where)
        for status, answer in operation["responses"].items():
            good = status == "default" or re.fullmatch("[1-5][0-9]{2}", status)
            require(good, where, f"status {status!r}")
            self._check_response(self.plain(answer), f"{where}: {status}")

    def _check_response(self, answer, where):
        check_members(answer, where, RESPONSE)
        self._check_content(answer.get("content", {}), where)
        for name, header in answer.get("headers", {}).items():
            check_members(header, f"{where}: {name}", HEADER)
            self.check_schema(header["schema"], f"{where}: {name}")

    def _check_content(self, content, where):
        for kind, one in content.items():
            require(set(one) == {"schema"}, where, f"{kind} has {set(one)}")
            self.check_schema(one["schema"], f"{where}: {kind}")

    def check_schema(self, schema, where):
        """Require that the validator knows all of a schema."""
        require(isinstance(schema, dict), where, "no schema")
        unknown = set(schema) - set(KEYWORDS) - NOTES
        require(not unknown, where, f"unknown keywords: {unknown}")
        types = schema.get("type", [])
        types = [types] if isinstance(types, str) else types
        require(set(types) <= set(TYPES), where, f"types {types}")
        require(schema.get("format", "int64") in FORMATS, where, "format")
        names = set(schema.get("properties", {}))
        if "properties" in schema:
            missing = set(schema.get("required", ())) - names
            require(not missing, where, f"{missing} required and not described")
        for name, one in schema.get("properties", {}).items():
            self.check_schema(one, f"{where}.{name}")
        for word in ("oneOf", "anyOf", "allOf"):
            for one in schema.get(word, ()):
                self.check_schema(one, where)
        for word in ("items", "additionalProperties"):
            if isinstance(schema.get(word), dict):
                self.check_schema(schema[word], f"{where}[]")
        if "pattern" in schema:
            re.compile(schema["pattern"])
        for one in schema.get("examples", ()):
            self.validate(schema, one, f"{where}: example")

    # --- values ---------------------------------------------------------------

    def validate(self, schema, value, where="value"):
        """Require that a value fits a schema, and that all of its members are
        described."""
        if isinstance(schema, str):
            schema = self.schema(schema)
        described = self._fit(schema, value, where)
        if isinstance(value, dict):
            more = set(value) - described
            require(not more, where, f"members that are not described: {more}")

    def _fit(self, schema, value, where):
        """Require that a value fits; the names of its members that are
        described."""
        described = set()
        for word, one in schema.items():
            if word in NOTES:
                continue
            require(word in KEYWORDS, where, f"unknown keyword {word}")
            described |= KEYWORDS[word](self, one, value, where, schema) or set()
        return described

    def _ref(self, ref, value, where, _):
        return self._fit(self.follow(ref), value, where)

    def _type(self, names, value, where, _):
        names = [names] if isinstance(names, str) else names
        good = any(is_type(value, name) for name in names)
        require(good, where, f"{value!r:.80} is not of type {names}")

    def _enum(self, values, value, where, _):
        require(value in values, where, f"{value!r:.80} is none of {values}")

    def _const(self, wanted, value, where, _):
        good = value == wanted and isinstance(value, type(wanted))
        require(good, where, f"{value!r:.80} is not {wanted!r}")

    def _properties(self, properties, value, where, _):
        if not isinstance(value, dict):
            return set()
        for name, one in properties.items():
            if name in value:
                self.validate(one, value[name], f"{where}.{name}")
        return set(properties)

    def _required(self, names, value, where, _):
        if isinstance(value, dict):
            missing = set(names) - set(value)
            require(not missing, where, f"lacks {missing}")

    def _additional(self, allowed, value, where, schema):
        if not isinstance(value, dict):
            return set()
        more = set(value) - set(schema.get("properties", {}))
        require(not more or allowed is not False, where, f"has {more}")
        if isinstance(allowed, dict):
            for name in more:
                self.validate(allowed, value[name], f"{where}.{name}")
        return more

    def _items(self, schema, value, where, _):
        if isinstance(value, list):
            for number, one in enumerate(value):
                self.validate(schema, one, f"{where}[{number}]")

    def _all_of(self, schemas, value, where, _):
        return set().union(*(self._fit(one, value, where) for one in schemas))

    def _matching(self, schemas, value, where):
        """What the schemas that fit describe; why others do not fit."""
        found, reasons = [], []
        for one in schemas:
            try:
                self.validate(one, value, where)
                found.append(self._fit(one, value, where))
            except Invalid as error:
                reasons.append(f"{one.get('$ref', one)}: {error}")
        return found, reasons

    def _one_of(self, schemas, value, where, _):
        found, reasons = self._matching(schemas, value, where)
        if not found and isinstance(value, dict):
            # Which of them was meant is told by its constants.
            told = [one for one in reasons if " is not '" not in one]
            reasons = told or reasons
        require(len(found) == 1, where, f"{len(found)} fit: " + "; ".join(reasons))
        return found[0]

    def _any_of(self, schemas, value, where, _):
        found, reasons = self._matching(schemas, value, where)
        require(found, where, "none fits: " + "; ".join(reasons))
        return set().union(*found)

    def _minimum(self, least, value, where, _):
        good = not is_type(value, "number") or value >= least
        require(good, where, f"{value!r} is less than {least}")

    def _maximum(self, most, value, where, _):
        good = not is_type(value, "number") or value <= most
        require(good, where, f"{value!r} is more than {most}")

    def _min_length(self, least, value, where, _):
        good = not isinstance(value, str) or len(value) >= least
        require(good, where, f"shorter than {least}")

    def _max_length(self, most, value, where, _):
        good = not isinstance(value, str) or len(value) <= most
        require(good, where, f"longer than {most}")

    def _pattern(self, pattern, value, where, _):
        good = not isinstance(value, str) or re.search(pattern, value)
        require(good, where, f"{value!r:.80} does not match {pattern}")

    def _format(self, name, value, where, _):
        require(name in FORMATS, where, f"unknown format {name}")
        require(value is None or FORMATS[name](value), where, f"{value!r}: {name}")


def is_int64(value):
    """Whether a number fits into 64 bits."""
    return is_type(value, "integer") and -(1 << 63) <= value < 1 << 63


def is_moment(value):
    """Whether a string is a time of RFC 3339, in UTC."""
    try:
        datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return False
    return value.endswith("Z")


FORMATS = {"int64": is_int64, "date-time": is_moment}
# pylint: disable=protected-access
KEYWORDS = {
    "$ref": Document._ref,
    "additionalProperties": Document._additional,
    "allOf": Document._all_of,
    "anyOf": Document._any_of,
    "const": Document._const,
    "enum": Document._enum,
    "format": Document._format,
    "items": Document._items,
    "maxLength": Document._max_length,
    "maximum": Document._maximum,
    "minLength": Document._min_length,
    "minimum": Document._minimum,
    "oneOf": Document._one_of,
    "pattern": Document._pattern,
    "properties": Document._properties,
    "required": Document._required,
    "type": Document._type,
}
