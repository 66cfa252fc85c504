// Verifies Switchyard webhooks with nothing but Go's standard library. Copy the functions above main into your receiver
// and pass them the raw bytes of the body, and http.Header's Get. Each returns "" if the request is genuine, otherwise a
// code that says what is wrong.
package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

const toleranceSeconds = 300

// VerifyStandardWebhook verifies Standard Webhooks. There are one or more whsec_… secrets, two during a rotation. An error
// means that a secret is malformed, not that the request is invalid.
func VerifyStandardWebhook(body []byte, header func(string) string, secrets []string, now time.Time) (string, error) {
	id, timestamp, signatures := header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")
	if id == "" || timestamp == "" || signatures == "" {
		return "signature_missing", nil
	}
	seconds, err := strconv.ParseUint(timestamp, 10, 40)
	if err != nil {
		return "header_invalid", nil
	}
	if age := now.Unix() - int64(seconds); age > toleranceSeconds || age < -toleranceSeconds {
		return "timestamp_outside_tolerance", nil
	}
	genuine := false
	for _, secret := range secrets {
		key, err := keyOf(secret)
		if err != nil {
			return "", err
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		expected := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		// Do not leave the loop early: the time it takes must not reveal which signature matched.
		for _, signature := range strings.Split(signatures, " ") {
			if hmac.Equal([]byte(signature), []byte(expected)) {
				genuine = true
			}
		}
	}
	if !genuine {
		return "signature_invalid", nil
	}
	return "", nil
}

// VerifyXSignature verifies X-Signature. In a batch it covers only the first message, so a batch of several messages is
// rejected unless Standard Webhooks has already verified the whole body.
func VerifyXSignature(body []byte, header func(string) string, sharedSecret string, isBodyProven bool) string {
	signature := header("x-signature")
	if signature == "" {
		return "signature_missing"
	}
	signed := body
	var batch []json.RawMessage
	if len(body) > 0 && body[0] == '[' {
		// Cut out of the text, not parsed and serialized again: Marshal would escape characters differently.
		if json.Unmarshal(body, &batch) != nil || len(batch) == 0 {
			return "signature_invalid"
		}
		signed = batch[0]
	}
	mac := hmac.New(sha1.New, []byte(sharedSecret))
	mac.Write(signed)
	if !hmac.Equal([]byte(signature), []byte(hex.EncodeToString(mac.Sum(nil)))) {
		return "signature_invalid"
	}
	if len(batch) > 1 && !isBodyProven {
		return "batch_unproven"
	}
	return ""
}

func keyOf(secret string) ([]byte, error) {
	text := strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "=")
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(key) < 24 {
		return nil, errors.New("a signing secret must be whsec_ followed by the base64 of at least 24 bytes")
	}
	return key, nil
}

// A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
func main() {
	secrets, sharedSecret := strings.Fields(os.Getenv("SIGNING_SECRETS")), os.Getenv("SHARED_SECRET")
	if len(secrets) == 0 && sharedSecret == "" {
		fmt.Fprintln(os.Stderr, "Set SIGNING_SECRETS or SHARED_SECRET.")
		os.Exit(2)
	}
	headers := map[string]string{}
	for _, line := range os.Args[1:] {
		name, value, _ := strings.Cut(line, ":")
		headers[strings.ToLower(name)] = strings.TrimLeft(value, " ")
	}
	header := func(name string) string { return headers[name] }
	body, err := io.ReadAll(os.Stdin)
	now := time.Now()
	if seconds, err := strconv.ParseInt(os.Getenv("NOW"), 10, 64); err == nil {
		now = time.Unix(seconds, 0)
	}
	problem := ""
	if err == nil && len(secrets) > 0 {
		problem, err = VerifyStandardWebhook(body, header, secrets, now)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if problem == "" && sharedSecret != "" {
		problem = VerifyXSignature(body, header, sharedSecret, len(secrets) > 0)
	}
	if problem != "" {
		fmt.Println("invalid: " + problem)
		os.Exit(1)
	}
	fmt.Println("valid")
}
