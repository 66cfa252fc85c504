// The OpenAPI document, without a running service. Routes are data, and only requests use the parts of the service that they need.

import { controlRoutes } from '../../packages/server/src/control/control.ts'
import { apiDocument, type OpenApiDocument } from '../../packages/server/src/control/openapi/api-document.ts'
import type { ControlParts } from '../../packages/server/src/control/routes/route.ts'

export function describedApi(): OpenApiDocument {
  return apiDocument(controlRoutes({} as ControlParts))
}
