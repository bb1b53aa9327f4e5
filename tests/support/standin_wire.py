# SPDX-License-Identifier: MIT
"""The protocols of agent-standin: reading requests, writing answers.

Each protocol has read(), which finds out how far the conversation is, and
answer(), which puts a step of the model (standin_model.py) into words. A
request has the last prompt of the user, the number of tool results since then,
whether it is a side request of the program's own (without tools, as for a
title), and the properties of the structured answer that is wanted.

An answer is sent as a stream of events or as a whole. `opening` are the events
after which a connection is cut or goes silent in the modes crash and stall.
"""

import collections
import json
import time
import uuid

# Tokens that each answer charges. `INPUT` has those that come from the cache
# or go there, as all protocols but Anthropic's count.
CACHED = 5000
WRITTEN = 300
INPUT = 1200 + WRITTEN + CACHED
OUTPUT = 40
THOUGHTS = 10
NO_USAGE = {"input": 0, "cached": 0, "output": 0}
USAGE = {"input": INPUT, "cached": CACHED, "output": OUTPUT}

# How qwen lets the model update what it remembers, after each session.
OWN_PROMPT = "Managed memory directory"

HOURS = 2 * 3600  # until the short window is reset
DAYS = 3 * 86400  # until the weekly one is

Request = collections.namedtuple("Request", "prompt done side properties")
Answer = collections.namedtuple(
    "Answer", "stream headers opening rest whole told", defaults=(NO_USAGE,)
)


def new_id(prefix):
    """An id like those of the services."""
    return prefix + uuid.uuid4().hex[:20]


def fold(turns, tools, properties=None):
    """The request of a conversation: pairs of tool results and a prompt."""
    prompt, done = "", 0
    for results, text in turns:
        if results:
            done += results
        elif text:
            prompt, done = text, 0
    side = not tools or prompt.startswith(OWN_PROMPT)
    return Request(prompt, done, side, properties or {})


def texts(parts):
    """The texts of a message of parts or of one text, without reminders."""
    if isinstance(parts, str):
        parts = [{"text": parts}]
    found = [p["text"] for p in parts or [] if p.get("text")]
    return "\n".join(t for t in found if not t.startswith("<system-reminder>"))


class Anthropic:
    """Messages, as claude uses them."""

    kind = "anthropic"

    @staticmethod
    def fits(path):
        """Whether a path belongs to this protocol."""
        return path.endswith("/messages")

    @staticmethod
    def read(body):
        """The request in a body."""
        turns = []
        for message in body.get("messages", []):
            if message["role"] == "user":
                parts = message.get("content")
                parts = [] if isinstance(parts, str) else parts
                results = [p for p in parts if p.get("type") == "tool_result"]
                turns.append((len(results), texts(message.get("content"))))
        tools = {tool.get("name"): tool for tool in body.get("tools") or []}
        answer = tools.get("StructuredOutput", {}).get("input_schema", {})
        return fold(turns, tools, answer.get("properties"))

    @staticmethod
    def finish(script, answer):
        """The script with a structured answer: a tool takes it."""
        tool = ["tool", "StructuredOutput", answer]
        return [*script[:-1], tool, ["text", "Done."]]

    @staticmethod
    def headers(mode):
        """What a subscription says about its windows."""
        now = int(time.time())
        name = "anthropic-ratelimit-unified"
        headers = {
            "request-id": "req_mock",
            f"{name}-status": "allowed",
            f"{name}-5h-status": "allowed",
            f"{name}-5h-reset": now + HOURS,
            f"{name}-5h-utilization": "0.63",
            f"{name}-7d-status": "allowed",
            f"{name}-7d-reset": now + DAYS,
            f"{name}-7d-utilization": "0.41",
            f"{name}-representative-claim": "five_hour",
            f"{name}-reset": now + HOURS,
        }
        if mode == "warn":
            headers |= {
                f"{name}-status": "allowed_warning",
                f"{name}-5h-utilization": "0.93",
                f"{name}-5h-surpassed-threshold": "0.9",
            }
        return headers

    @staticmethod
    def content(step):
        """A step as a content block, and its only delta."""
        if step[0] == "text":
            block = {"type": "text", "text": step[1]}
            return block, {"type": "text_delta", "text": step[1]}
        if step[0] == "sh":
            step = ["tool", "Bash", {"command": step[1], "description": "run"}]
        block = {"type": "tool_use", "id": new_id("toolu_"), "name": step[1]}
        text = json.dumps(step[2])
        delta = {"type": "input_json_delta", "partial_json": text}
        return {**block, "input": step[2]}, delta

    def answer(self, path, body, step, mode):
        """The answer with a step."""
        del path
        block, delta = self.content(step)
        empty = {"text": ""} if step[0] == "text" else {"input": {}}
        stop = {
            "stop_reason": "end_turn" if step[0] == "text" else "tool_use",
            "stop_sequence": None,
        }
        usage = {
            "input_tokens": INPUT - WRITTEN - CACHED,
            "cache_creation_input_tokens": WRITTEN,
            "cache_read_input_tokens": CACHED,
            "output_tokens": OUTPUT,
        }
        message = {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
        }
        begun = {
            **message,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": 1},
        }
        rest = [
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {**block, **empty},
            },
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": usage},
            {"type": "message_stop"},
        ]
        return Answer(
            bool(body.get("stream")),
            self.headers(mode),
            [("message_start", {"type": "message_start", "message": begun})],
            [(event["type"], event) for event in rest],
            {**message, "content": [block], **stop, "usage": usage},
            {**USAGE, "output": 1},
        )


class Responses:
    """OpenAI's Responses, as codex uses them."""

    kind = "responses"
    shells = {
        "exec_command": lambda command: {"cmd": command},
        "shell_command": lambda command: {"command": command},
        "shell": lambda command: {"command": ["bash", "-lc", command]},
    }

    @staticmethod
    def fits(path):
        """Whether a path belongs to this protocol."""
        return path.endswith("/responses")

    @staticmethod
    def read(body):
        """The request in a body; texts of the program's own begin in their
        way."""
        items = body.get("input") or []
        if isinstance(items, str):
            items = [{"role": "user", "content": [{"text": items}]}]
        turns = []
        for item in items:
            kind = item.get("type", "message")
            if kind.endswith("_call_output"):
                turns.append((1, ""))
            elif kind == "message" and item.get("role") == "user":
                text = texts(item.get("content"))
                own = text.startswith(("<", "# AGENTS"))
                turns.append((0, "" if own else text))
        wanted = (body.get("text") or {}).get("format") or {}
        answer = wanted.get("schema") or {}
        return fold(turns, body.get("tools"), answer.get("properties"))

    @staticmethod
    def finish(script, answer):
        """The script with a structured answer: it is all of the text."""
        return [*script[:-1], ["text", json.dumps(answer)]]

    @staticmethod
    def headers(used=63):
        """What a subscription says about its windows."""
        now = int(time.time())
        return {
            "x-codex-primary-used-percent": used,
            "x-codex-primary-window-minutes": 300,
            "x-codex-primary-reset-at": now + HOURS,
            "x-codex-secondary-used-percent": 41,
            "x-codex-secondary-window-minutes": 10080,
            "x-codex-secondary-reset-at": now + DAYS,
        }

    def item(self, body, step):
        """A step as an item of the output."""
        if step[0] == "text":
            return {
                "type": "message",
                "role": "assistant",
                "id": "msg_1",
                "content": [{"type": "output_text", "text": step[1]}],
            }
        if step[0] == "sh":
            names = [t.get("name") for t in body.get("tools") or []]
            shell = next((n for n in self.shells if n in names), "shell")
            step = ["tool", shell, self.shells[shell](step[1])]
        return {
            "type": "function_call",
            "id": "fc_1",
            "call_id": new_id("call_"),
            "name": step[1],
            "arguments": json.dumps(step[2]),
            **({"namespace": step[3]} if len(step) > 3 else {}),
        }

    def answer(self, path, body, step, mode):
        """The answer with a step."""
        del path, mode
        item = self.item(body, step)
        response = {"id": new_id("resp_")}
        completed = {
            **response,
            "status": "completed",
            "output": [item],
            "usage": {
                "input_tokens": INPUT,
                "input_tokens_details": {"cached_tokens": CACHED},
                "output_tokens": OUTPUT,
                "output_tokens_details": {"reasoning_tokens": THOUGHTS},
                "total_tokens": INPUT + OUTPUT,
            },
        }
        opening = [{"type": "response.created", "response": response}]
        rest = [
            {
                "type": "response.output_item.done",
                "output_index": 0,
                "item": item,
            },
            {"type": "response.completed", "response": completed},
        ]
        return Answer(
            True,
            self.headers(),
            [(event["type"], event) for event in opening],
            [(event["type"], event) for event in rest],
            completed,
        )


class Chat:
    """OpenAI's Chat Completions, as opencode and qwen use them."""

    kind = "chat"
    shells = ("bash", "run_shell_command", "shell", "execute_command")
    extras = {
        "description": "run",
        "is_background": False,
        "requires_approval": False,
    }

    @staticmethod
    def fits(path):
        """Whether a path belongs to this protocol."""
        return path.endswith("/chat/completions")

    @staticmethod
    def read(body):
        """The request in a body."""
        turns = []
        for message in body.get("messages", []):
            if message["role"] == "tool":
                turns.append((1, ""))
            elif message["role"] == "user":
                turns.append((0, texts(message.get("content"))))
        return fold(turns, body.get("tools"))

    @staticmethod
    def finish(script, answer):
        """Nothing is structured here."""
        del answer
        return script

    def message(self, body, step):
        """A step as a message or a delta."""
        if step[0] == "text":
            return {"role": "assistant", "content": step[1]}
        if step[0] == "sh":
            tools = [t.get("function", {}) for t in body.get("tools") or []]
            known = {tool.get("name"): tool for tool in tools}
            shell = next((n for n in self.shells if n in known), "bash")
            takes = known.get(shell, {}).get("parameters", {})
            takes = takes.get("properties", {})
            extras = {k: v for k, v in self.extras.items() if k in takes}
            step = ["tool", shell, {"command": step[1], **extras}]
        call = {
            "index": 0,
            "id": new_id("call_"),
            "type": "function",
            "function": {"name": step[1], "arguments": json.dumps(step[2])},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def answer(self, path, body, step, mode):
        """The answer with a step."""
        del path, mode
        message = self.message(body, step)
        reason = "stop" if step[0] == "text" else "tool_calls"
        usage = {
            "prompt_tokens": INPUT,
            "completion_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
            "prompt_tokens_details": {"cached_tokens": CACHED},
        }
        base = {
            "id": new_id("chatcmpl-"),
            "created": int(time.time()),
            "model": body.get("model"),
        }
        chunk = {**base, "object": "chat.completion.chunk"}
        said = {"index": 0, "delta": message, "finish_reason": None}
        ended = {"index": 0, "delta": {}, "finish_reason": reason}
        whole = {
            **base,
            "object": "chat.completion",
            "choices": [
                {"index": 0, "message": message, "finish_reason": reason}
            ],
            "usage": usage,
        }
        rest = [
            {**chunk, "choices": [said]},
            {**chunk, "choices": [ended]},
            {**chunk, "choices": [], "usage": usage},
            "[DONE]",
        ]
        rest = [(None, event) for event in rest]
        return Answer(bool(body.get("stream")), {}, [], rest, whole)


class Gemini:
    """Gemini's generateContent."""

    kind = "gemini"
    # To the questions that the program asks for itself, all at once.
    checks = {
        "reasoning": "mock",
        "model_choice": "flash",
        "complexity_reasoning": "x",
        "complexity_score": 10,
        "next_speaker": "user",
    }

    @staticmethod
    def fits(path):
        """Whether a path belongs to this protocol."""
        return path.endswith((":generateContent", ":streamGenerateContent"))

    @staticmethod
    def read(body):
        """The request in a body."""
        turns = []
        for message in body.get("contents", []):
            if message.get("role") == "user":
                parts = message.get("parts", [])
                results = [p for p in parts if "functionResponse" in p]
                own = "<session_context>"
                said = [
                    p for p in parts if not p.get("text", own).startswith(own)
                ]
                turns.append((len(results), texts(said)))
        return fold(turns, body.get("tools"))

    @staticmethod
    def finish(script, answer):
        """Nothing is structured here."""
        del answer
        return script

    def part(self, body, step):
        """A step as a part of the content."""
        config = body.get("generationConfig", {})
        if (
            config.get("responseJsonSchema")
            or config.get("responseMimeType") == "application/json"
        ):
            return {"text": json.dumps(self.checks)}
        if step[0] == "text":
            return {"text": step[1]}
        if step[0] == "sh":
            args = {"command": step[1], "description": "run"}
            step = ["tool", "run_shell_command", args]
        return {"functionCall": {"name": step[1], "args": step[2]}}

    def answer(self, path, body, step, mode):
        """The answer with a step."""
        del mode
        content = {"role": "model", "parts": [self.part(body, step)]}
        whole = {
            "candidates": [
                {"content": content, "finishReason": "STOP", "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": INPUT,
                "cachedContentTokenCount": CACHED,
                "candidatesTokenCount": OUTPUT,
                "thoughtsTokenCount": THOUGHTS,
                "totalTokenCount": INPUT + OUTPUT + THOUGHTS,
            },
            "modelVersion": "mock",
        }
        return Answer("stream" in path, {}, [], [(None, whole)], whole)


PROTOCOLS = (Anthropic(), Responses(), Chat(), Gemini())


def protocol_of(path):
    """The protocol of a path, or None."""
    return next((one for one in PROTOCOLS if one.fits(path)), None)
