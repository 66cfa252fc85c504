// The description of the API, without a service: routes are data, and what they work with is touched only by a request.

import { controlRoutes } from '../../packages/server/src/control/control.ts'
import { apiDocument, type OpenApiDocument } from '../../packages/server/src/control/openapi/api-document.ts'
import type { ControlParts } from '../../packages/server/src/control/route.ts'

export function describedApi(): OpenApiDocument {
  return apiDocument(controlRoutes({} as ControlParts))
}
