// Where the files of a lake are. Two implementations: a folder, and a bucket of an S3-compatible store. Paths are relative to the lake, with `/`.

import { randomBytes } from 'node:crypto'

export interface LakeFile {
  readonly byteLength: number
  slice(start: number, end?: number): Promise<ArrayBuffer>
  close(): Promise<void>
}

export interface NewFile {
  write(bytes: Uint8Array): Promise<void>
  /** Makes everything durable, and the file visible under its name, at once. A second call does nothing. */
  publish(): Promise<void>
  /** Does nothing to a file that is published. */
  discard(): Promise<void>
}

export interface Listed {
  name: string
  isFolder: boolean
  modifiedMs: number
}

export interface LakeFiles {
  /** How sentences name it. */
  readonly place: string
  /**
   * Null if there is no such file. The version is for `replace`. Signals end requests to a bucket. It is an error if an object of a bucket is larger
   * than `maxBytes`.
   */
  read(path: string, signal?: AbortSignal, maxBytes?: number): Promise<{ bytes: Uint8Array; version: string } | null>
  open(path: string, signal?: AbortSignal): Promise<LakeFile | null>
  create(path: string): Promise<NewFile>
  /** Replaces a small file as a whole. False if it is not the version that was read; null stands for a file that does not exist. */
  replace(path: string, version: string | null, bytes: Uint8Array): Promise<boolean>
  /** Does nothing if there is none. */
  remove(path: string): Promise<void>
  /** Empty if there is no such folder. */
  list(folder: string, signal?: AbortSignal): Promise<Listed[]>
  /** Whether `exclusively` keeps other processes out. */
  readonly hasLocks: boolean
  /** Throws if the place lacks something that keeps writers apart. */
  verify?(): Promise<void>
  close?(): Promise<void>
  /** Runs `work` while no other process does so for the same folder. A bucket has no locks: there, only `replace` keeps writers apart. */
  exclusively<T>(folder: string, work: () => Promise<T>): Promise<T>
}

/**
 * What is added to the name of a new file. Where there are locks, a repeated load overwrites what its first attempt left behind. Without locks the first
 * attempt may still run, or may have committed a moment ago, so each attempt has names of its own, and what is left over is removed after a day.
 */
export function nameEnding({ hasLocks }: Pick<LakeFiles, 'hasLocks'>): string {
  return hasLocks ? '' : `-${randomBytes(6).toString('hex')}`
}
