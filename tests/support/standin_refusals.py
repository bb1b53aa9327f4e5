# SPDX-License-Identifier: MIT
"""How the services refuse requests: the modes of agent-standin that fail.

A refusal is (status, body, headers). Texts and headers are those of the
services, as the programs look for words in them.
"""

import time

import standin_wire

RETRY_AFTER = {"429": 3, "429x": 3600}
RESETS_IN = {
    "limit": standin_wire.HOURS,
    "limitshort": 15,
    "weekly": standin_wire.DAYS,
}
MODES = (*RETRY_AFTER, *RESETS_IN, "529", "500", "401", "quota")

BILLING = (
    "You exceeded your current quota, please check your plan and billing"
    " details."
)
GOOGLE = "type.googleapis.com/google.rpc"
METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"


def anthropic(status, kind, message, headers=None):
    """A refusal of Anthropic's."""
    error = {"type": kind, "message": message}
    body = {"type": "error", "error": error, "request_id": "req_mock"}
    return status, body, headers or {}


def openai(status, error, headers=None):
    """A refusal of OpenAI's."""
    return status, {"error": error}, headers or {}


def google(code, status, message, details=()):
    """A refusal of Google's."""
    error = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = list(details)
    return code, {"error": error}, {}


def google_quota(per, value, seconds):
    """Details of a quota of so many requests per minute or day."""
    violation = {
        "quotaMetric": METRIC,
        "quotaId": f"GenerateRequestsPer{per}PerProjectPerModel-FreeTier",
        "quotaValue": str(value),
    }
    return [
        {"@type": f"{GOOGLE}.QuotaFailure", "violations": [violation]},
        {"@type": f"{GOOGLE}.RetryInfo", "retryDelay": f"{seconds}s"},
    ]


def rate(mode):
    """Too many requests in this minute."""
    headers = {"retry-after": RETRY_AFTER[mode]}
    message = (
        "Rate limit reached for gpt-5 in organization org-mock on tokens per"
        " min (TPM): Limit 30000, Used 30000, Requested 1000. Please try again"
        " in 3s."
    )
    error = {
        "message": message,
        "type": "tokens",
        "param": None,
        "code": "rate_limit_exceeded",
    }
    status, body, _ = google(
        429,
        "RESOURCE_EXHAUSTED",
        f"{BILLING} Please retry in 3s.",
        google_quota("Minute", 10, 3),
    )
    return {
        "anthropic": anthropic(
            429,
            "rate_limit_error",
            "This request would exceed your organization's rate limit of"
            " 50,000 input tokens per minute.",
            {**headers, "request-id": "req_mock"},
        ),
        "openai": openai(429, error, headers),
        "gemini": (status, body, headers),
    }


def window(mode):
    """A window of the subscription is used up."""
    seconds = RESETS_IN[mode]
    reset = int(time.time()) + seconds
    claim, short = ("five_hour", "5h")
    if mode == "weekly":
        claim, short = ("seven_day", "7d")
    name = "anthropic-ratelimit-unified"
    headers = {
        f"{name}-status": "rejected",
        f"{name}-reset": reset,
        f"{name}-representative-claim": claim,
        f"{name}-{short}-status": "rejected",
        f"{name}-{short}-reset": reset,
        f"{name}-{short}-utilization": "1.0",
        f"{name}-overage-status": "rejected",
        f"{name}-overage-disabled-reason": "org_level_disabled",
        "request-id": "req_mock",
        "retry-after": seconds,
        "x-should-retry": "true",
    }
    error = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": reset,
        "resets_in_seconds": seconds,
    }
    meters = standin_wire.Responses.headers(100)
    meters["x-codex-primary-reset-at"] = reset
    return {
        "anthropic": anthropic(
            429,
            "rate_limit_error",
            "This request would exceed your account's rate limit. Please try"
            " again later.",
            headers,
        ),
        "openai": openai(429, error, meters),
        "gemini": google(
            429,
            "RESOURCE_EXHAUSTED",
            f"{BILLING} For more information on this error, head to:"
            " https://ai.google.dev/gemini-api/docs/rate-limits.\n* Quota"
            f" exceeded for metric: {METRIC}, limit: 250\nPlease retry in"
            " 7h12m3s.",
            google_quota("Day", 250, 25923),
        ),
    }


def overloaded():
    """The service has too much to do."""
    message = "The model is overloaded. Please try again later."
    other = google(503, "UNAVAILABLE", message)
    other[1]["error"]["type"] = "server_error"
    return {
        "anthropic": anthropic(529, "overloaded_error", "Overloaded"),
        "openai": other,
        "gemini": other,
    }


def broken():
    """The service has a fault."""
    error = {
        "type": "api_error",
        "code": 500,
        "status": "INTERNAL",
        "message": "Internal server error",
    }
    same = (500, {"type": "error", "error": error}, {})
    return {"anthropic": same, "openai": same, "gemini": same}


def unknown_key():
    """The key is wrong."""
    error = {
        "type": "authentication_error",
        "message": "invalid x-api-key",
        "code": "invalid_api_key",
    }
    info = {"@type": f"{GOOGLE}.ErrorInfo", "reason": "API_KEY_INVALID"}
    message = "API key not valid. Please pass a valid API key."
    same = (401, {"type": "error", "error": error}, {})
    return {
        "anthropic": same,
        "openai": same,
        "gemini": google(400, "INVALID_ARGUMENT", message, [info]),
    }


def no_money():
    """Nothing is left on the account."""
    error = {
        "message": BILLING,
        "type": "insufficient_quota",
        "param": None,
        "code": "insufficient_quota",
    }
    credit = anthropic(
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API. Please go"
        " to Plans & Billing to upgrade or purchase credits.",
    )
    del credit[1]["request_id"]
    return {
        "anthropic": credit,
        "openai": openai(429, error),
        "gemini": google(
            429,
            "RESOURCE_EXHAUSTED",
            "Your prepayment credits are depleted. Please go to AI Studio to"
            " manage your project and billing.",
        ),
    }


def refusal(mode, kind):
    """How a service of this kind of protocol refuses in a mode, or None."""
    kind = {"responses": "openai", "chat": "openai"}.get(kind, kind)
    if mode in RETRY_AFTER:
        return rate(mode)[kind]
    if mode in RESETS_IN:
        return window(mode)[kind]
    others = {
        "529": overloaded,
        "500": broken,
        "401": unknown_key,
        "quota": no_money,
    }
    return others[mode]()[kind] if mode in others else None
