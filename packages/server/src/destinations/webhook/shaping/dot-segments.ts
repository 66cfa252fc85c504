// Finds `.` and `..` in a path. URL parsers resolve them, also as %2E, so a value `..` in `/users/{{userId}}` would send the request, with the
// credentials of the destination, to another path than the configured one. Proxies resolve more than URL parsers do: nginx also decodes %2F and
// then resolves, Tomcat ignores what follows a `;`, and some servers decode twice. So each segment is read in the way that decodes most.

/** More than servers decode. A literal % stands for itself, so the escape of an escape is an escape again. */
const MAX_ENCODINGS = 4

export function hasDotSegment(path: string): boolean {
  // Called for every message, and most paths have neither a dot nor an escape.
  return /[.%]/.test(path) && path.split('/').some(isResolved)
}

function isResolved(segment: string): boolean {
  let decoded = segment
  for (let count = 0; count < MAX_ENCODINGS; count++) decoded = decoded.replaceAll(/%(?:25)*([0-7][0-9a-f])/gi, asciiOf)
  return decoded.split(/[/\\]/).some((part) => /^\.{1,2}$/.test(withoutIgnored(part)))
}

function asciiOf(_escape: string, hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16))
}

/** Removes what servers ignore: control characters and spaces anywhere, parameters after a semicolon, and what a proxy that decodes makes a query. */
function withoutIgnored(part: string): string {
  return part.replaceAll(/[\p{Cc} ]|[;?#].*/gsu, '')
}
