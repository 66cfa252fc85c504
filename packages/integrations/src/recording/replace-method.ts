/** Any method can be assigned to this type; nothing can be called through it except with `Reflect.apply`. */
export type Method = (this: never, ...args: never[]) => unknown

/** Replaces a method of one object. The replacement gets the original, and then the arguments. */
export function replaceMethod(
  object: object,
  name: string,
  replacement: (this: never, original: Method, ...args: never[]) => unknown,
): void {
  const methods = object as Record<string, Method>
  const original = methods[name] as Method
  methods[name] = function (this: never, ...args: never[]) {
    return Reflect.apply(replacement, this, [original, ...args])
  }
}
