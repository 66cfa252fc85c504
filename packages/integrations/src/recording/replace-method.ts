/** Any method can be assigned to this type; nothing can be called through it except with `Reflect.apply`. */
export type Method = (this: never, ...args: never[]) => unknown

/** Replaces a method of one object. */
export function replaceMethod(object: object, name: string, replacement: (original: Method) => Method): void {
  const methods = object as Record<string, Method>
  methods[name] = replacement(methods[name] as Method)
}
