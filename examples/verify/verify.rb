# Verifies Switchyard webhooks with nothing but Ruby's standard library. Copy the methods above `main` into your receiver
# and pass them the raw bytes of the body. Each returns nil if the request is genuine, otherwise a code that says what is wrong.

require "openssl"

TOLERANCE_SECONDS = 300

# Standard Webhooks. `header` returns a header by its lower-case name; `secrets` has one or more whsec_… values, two during a rotation.
def verify_standard_webhook(body, header, secrets, now = Time.now.to_i)
  id, timestamp, signatures = %w[webhook-id webhook-timestamp webhook-signature].map { |name| header.call(name).to_s }
  return "signature_missing" if id.empty? || timestamp.empty? || signatures.empty?
  return "header_invalid" unless timestamp.match?(/\A[0-9]{1,12}\z/)
  return "timestamp_outside_tolerance" if (now - timestamp.to_i).abs > TOLERANCE_SECONDS

  genuine = false
  secrets.each do |secret|
    digest = [OpenSSL::HMAC.digest("SHA256", key_of(secret), "#{id}.#{timestamp}.".b + body.b)].pack("m0")
    # Do not leave the loop early: the time it takes must not reveal which signature matched.
    signatures.split(" ").each { |signature| genuine = true if same?(signature, "v1,#{digest}") }
  end
  genuine ? nil : "signature_invalid"
end

# X-Signature. In a batch it covers only the first message, so a batch of several messages is rejected unless
# Standard Webhooks has already verified the whole body.
def verify_x_signature(body, header, shared_secret, body_proven = false)
  signature = header.call("x-signature").to_s
  return "signature_missing" if signature.empty?

  signed = batch?(body) ? first_message(body) : body
  return "signature_invalid" if signed.nil?

  return "signature_invalid" unless same?(signature, OpenSSL::HMAC.hexdigest("SHA1", shared_secret, signed))

  body_proven || !batch?(body) || body.b == "[".b + signed.b + "]".b ? nil : "batch_unproven"
end

def batch?(body)
  body.getbyte(0) == "[".ord
end

# Cut out of the text, not parsed and serialized again: JSON.generate would write numbers differently.
def first_message(body)
  return nil unless body.getbyte(1) == "{".ord

  depth = 0
  quoted = escaped = false
  body.each_byte.with_index do |byte, at|
    next if at.zero?

    if escaped then escaped = false
    elsif quoted
      escaped = byte == "\\".ord
      quoted = byte != '"'.ord
    elsif byte == '"'.ord then quoted = true
    elsif byte == "{".ord then depth += 1
    elsif byte == "}".ord
      depth -= 1
      return body.byteslice(1, at) if depth.zero?
    end
  end
  nil
end

def key_of(secret)
  text = secret.delete_prefix("whsec_")
  key = (text + "=" * (-text.length % 4)).unpack1("m0")
  raise ArgumentError, "A signing secret must be whsec_ followed by the base64 of at least 24 bytes." if key.bytesize < 24

  key
end

def same?(received, computed)
  OpenSSL.secure_compare(received.b, computed.b)
end

# A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
def main
  secrets = ENV.fetch("SIGNING_SECRETS", "").split
  shared_secret = ENV.fetch("SHARED_SECRET", "")
  if secrets.empty? && shared_secret.empty?
    warn "Set SIGNING_SECRETS or SHARED_SECRET."
    return 2
  end
  headers = ARGV.to_h do |line|
    name, _, value = line.partition(":")
    [name.downcase, value.sub(/\A */, "")]
  end
  header = ->(name) { headers[name] }
  body = $stdin.binmode.read
  problem = nil
  problem = verify_standard_webhook(body, header, secrets, Integer(ENV.fetch("NOW", Time.now.to_i.to_s), 10)) unless secrets.empty?
  problem ||= verify_x_signature(body, header, shared_secret, !secrets.empty?) unless shared_secret.empty?
  if problem
    puts "invalid: #{problem}"
    return 1
  end
  puts "valid"
  0
rescue ArgumentError => error
  warn error.message
  2
end

exit main if $PROGRAM_NAME == __FILE__
