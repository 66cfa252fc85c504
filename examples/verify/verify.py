# Verifies Switchyard webhooks with nothing but Python's standard library. Copy the functions above `main` into your
# receiver and pass them the raw bytes of the body. Each returns None if the request is genuine, otherwise a code that
# says what is wrong.

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time

TOLERANCE_SECONDS = 300


def verify_standard_webhook(body, header, secrets, now=None):
    """Standard Webhooks. `header` returns a header by its lower-case name; `secrets` has one or more whsec_… values, two during a rotation."""
    id, timestamp, signatures = (header(name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not id or not timestamp or not signatures:
        return "signature_missing"
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        return "header_invalid"
    if abs((time.time() if now is None else now) - int(timestamp)) > TOLERANCE_SECONDS:
        return "timestamp_outside_tolerance"
    genuine = False
    for secret in secrets:
        signed = f"{id}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.digest(key_of(secret), signed, hashlib.sha256)).decode()
        # Do not leave the loop early: the time it takes must not reveal which signature matched.
        for signature in signatures.split(" "):
            if is_equal(signature, "v1," + digest):
                genuine = True
    return None if genuine else "signature_invalid"


def verify_x_signature(body, header, shared_secret, is_body_proven=False):
    """X-Signature. In a batch it covers only the first message, so a batch of several messages is rejected unless
    Standard Webhooks has already verified the whole body."""
    signature = header("x-signature")
    if not signature:
        return "signature_missing"
    signed = first_message(body) if is_batch(body) else body
    if signed is None:
        return "signature_invalid"
    digest = hmac.new(shared_secret.encode(), signed, hashlib.sha1).hexdigest()
    if not is_equal(signature, digest):
        return "signature_invalid"
    return None if is_body_proven or not is_batch(body) or body == b"[" + signed + b"]" else "batch_unproven"


def is_batch(body):
    return body[:1] == b"["


def first_message(body):
    # Cut out of the text, not parsed and serialized again: json.dumps would write numbers and spaces differently.
    try:
        text = body.decode()
        _, end = json.JSONDecoder().raw_decode(text, 1)
        return text[1:end].encode()
    except (ValueError, RecursionError):
        return None


def key_of(secret):
    text = secret.removeprefix("whsec_")
    key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    if len(key) < 24:
        raise ValueError("A signing secret must be whsec_ followed by the base64 of at least 24 bytes.")
    return key


def is_equal(received, computed):
    return hmac.compare_digest(received.encode("utf-8", "replace"), computed.encode())


# A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
def main():
    secrets = os.environ.get("SIGNING_SECRETS", "").split()
    shared_secret = os.environ.get("SHARED_SECRET", "")
    if not secrets and not shared_secret:
        print("Set SIGNING_SECRETS or SHARED_SECRET.", file=sys.stderr)
        return 2
    headers = {}
    for line in sys.argv[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.lstrip(" ")
    body = sys.stdin.buffer.read()
    now = os.environ.get("NOW")
    problem = None
    if secrets:
        problem = verify_standard_webhook(body, headers.get, secrets, int(now) if now else None)
    if shared_secret and problem is None:
        problem = verify_x_signature(body, headers.get, shared_secret, bool(secrets))
    if problem is not None:
        print(f"invalid: {problem}")
        return 1
    print("valid")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValueError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
