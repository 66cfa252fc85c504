<?php
// Verifies Switchyard webhooks with nothing but PHP, 8.0 or later. Copy the functions above main into your receiver and
// pass them the body as file_get_contents('php://input') returns it. Each returns null if the request is genuine,
// otherwise a code that says what is wrong.

declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/** Standard Webhooks. $header returns a header by its lower-case name; $secrets has one or more whsec_… values, two during a rotation. */
function verify_standard_webhook(string $body, callable $header, array $secrets, ?int $now = null): ?string
{
    [$id, $timestamp, $signatures] = array_map($header, ['webhook-id', 'webhook-timestamp', 'webhook-signature']);
    if (($id ?? '') === '' || ($timestamp ?? '') === '' || ($signatures ?? '') === '') {
        return 'signature_missing';
    }
    if (!preg_match('/\A[0-9]{1,12}\z/', $timestamp)) {
        return 'header_invalid';
    }
    if (abs(($now ?? time()) - (int) $timestamp) > TOLERANCE_SECONDS) {
        return 'timestamp_outside_tolerance';
    }
    $genuine = false;
    foreach ($secrets as $secret) {
        $digest = base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", key_of($secret), true));
        // Do not leave the loop early: the time it takes must not reveal which signature matched.
        foreach (explode(' ', $signatures) as $signature) {
            if (hash_equals("v1,$digest", $signature)) {
                $genuine = true;
            }
        }
    }
    return $genuine ? null : 'signature_invalid';
}

/**
 * X-Signature. In a batch it covers only the first message, so a batch of several messages is rejected unless
 * Standard Webhooks has already verified the whole body.
 */
function verify_x_signature(string $body, callable $header, string $sharedSecret, bool $isBodyProven = false): ?string
{
    $signature = $header('x-signature') ?? '';
    if ($signature === '') {
        return 'signature_missing';
    }
    $signed = is_batch($body) ? first_message($body) : $body;
    if ($signed === null) {
        return 'signature_invalid';
    }
    if (!hash_equals(hash_hmac('sha1', $signed, $sharedSecret), $signature)) {
        return 'signature_invalid';
    }
    return $isBodyProven || !is_batch($body) || $body === "[$signed]" ? null : 'batch_unproven';
}

function is_batch(string $body): bool
{
    return str_starts_with($body, '[');
}

/** Cut out of the text, not parsed and serialized again: json_encode would escape characters differently. */
function first_message(string $body): ?string
{
    if (substr($body, 1, 1) !== '{') {
        return null;
    }
    $depth = 0;
    $quoted = false;
    for ($at = 1; $at < strlen($body); $at++) {
        $character = $body[$at];
        if ($quoted) {
            if ($character === '\\') {
                $at++;
            } elseif ($character === '"') {
                $quoted = false;
            }
        } elseif ($character === '"') {
            $quoted = true;
        } elseif ($character === '{') {
            $depth++;
        } elseif ($character === '}' && --$depth === 0) {
            return substr($body, 1, $at);
        }
    }
    return null;
}

function key_of(string $secret): string
{
    $key = base64_decode(preg_replace('/\Awhsec_/', '', $secret), true);
    if ($key === false || strlen($key) < 24) {
        throw new InvalidArgumentException('A signing secret must be whsec_ followed by the base64 of at least 24 bytes.');
    }
    return $key;
}

// A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
function main(array $arguments): int
{
    $secrets = array_values(array_filter(explode(' ', getenv('SIGNING_SECRETS') ?: '')));
    $sharedSecret = getenv('SHARED_SECRET') ?: '';
    if ($secrets === [] && $sharedSecret === '') {
        fwrite(STDERR, "Set SIGNING_SECRETS or SHARED_SECRET.\n");
        return 2;
    }
    $headers = [];
    foreach ($arguments as $line) {
        [$name, $value] = explode(':', $line, 2) + [1 => ''];
        $headers[strtolower($name)] = ltrim($value, ' ');
    }
    $header = fn (string $name): ?string => $headers[$name] ?? null;
    $body = stream_get_contents(STDIN);
    $now = getenv('NOW') ? (int) getenv('NOW') : null;
    $problem = null;
    if ($secrets !== []) {
        $problem = verify_standard_webhook($body, $header, $secrets, $now);
    }
    if ($sharedSecret !== '') {
        $problem ??= verify_x_signature($body, $header, $sharedSecret, $secrets !== []);
    }
    if ($problem !== null) {
        echo "invalid: $problem\n";
        return 1;
    }
    echo "valid\n";
    return 0;
}

if (PHP_SAPI === 'cli' && realpath($argv[0]) === __FILE__) {
    try {
        exit(main(array_slice($argv, 1)));
    } catch (InvalidArgumentException $error) {
        fwrite(STDERR, $error->getMessage() . "\n");
        exit(2);
    }
}
