// The design of the site: the default theme in the dashboard's colours and font. The theme's own copy of Inter is left out.

import DefaultTheme from 'vitepress/theme-without-fonts'
import '@fontsource-variable/inter/wght.css'
import 'virtual:code-colours.css'
import './style.css'

export default DefaultTheme
