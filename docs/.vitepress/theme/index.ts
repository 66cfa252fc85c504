// The look of the site: the default theme without its web font, in the dashboard's colours.

import DefaultTheme from 'vitepress/theme-without-fonts'
import 'virtual:code-colours.css'
import './style.css'

export default DefaultTheme
