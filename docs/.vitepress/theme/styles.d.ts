// Stylesheets are imported for their side effects; Vite handles them.

declare module '*.css'
