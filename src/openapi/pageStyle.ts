/** What Swagger UI's style sheet does not style: the background, both colour schemes, narrow screens. */

/** CSS. */
export const pageStyle = `/* Swagger UI's own html.dark-mode comes above this, where its version has one */
html {
  box-sizing: border-box;
  background: #fafafa;
  color-scheme: light;
}
*,
*::before,
*::after {
  box-sizing: inherit;
}
body {
  margin: 0;
}
noscript {
  display: block;
  padding: 2rem;
  font-family: sans-serif;
}

/* a choice of one, and columns that are empty */
.swagger-ui .schemes-server-container > div:has(.servers option[value='/']:only-child),
.swagger-ui .responses-table:not(:has(td.response-col_links > :not(i))) .response-col_links {
  display: none;
}

.swagger-ui .dialog-ux .modal-ux {
  width: calc(100% - 2rem);
}
@media (max-width: 40rem) {
  .swagger-ui .info {
    margin: 1.5rem 0;
  }
  .swagger-ui .opblock-tag {
    flex-wrap: wrap;
    position: relative;
    padding-right: 3rem;
  }
  .swagger-ui .opblock-tag small {
    flex: 1 0 100%;
    padding: 0.25rem 0 0;
  }
  .swagger-ui .opblock-tag .expand-operation {
    position: absolute;
    right: 1rem;
  }
  .swagger-ui table.responses-table > tbody > tr > td {
    padding-right: 0;
  }
  .swagger-ui .response-col_description {
    width: 100%;
  }
  /* room for the buttons that lie on them; the element's own style would win */
  .swagger-ui .curl-command pre,
  .swagger-ui .live-responses-table .highlight-code pre {
    padding-bottom: 3.5rem !important;
  }
}
`
