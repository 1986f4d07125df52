package apidesc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/newsfork/seed-engine/transforms/docs/apidesc"
)

func TestIsName(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/openapi.json": true, "/docs/openapi.yaml": true, "/docs/OpenAPI.yml": true, "/swagger.json": true, "/v1/swagger-v2.json": true, "/payments.openapi.yaml": true,
		"/openapi-3.1.json": true, "/v3/api-docs": true, "/v3/api-docs.yaml": true, "/docs/openapi": false, "/docs/openapi.html": false, "/docs/notopenapi.json": false,
		"/openapi.json/x": false, "/package.json": false, "/api-docs": false, "/docs/openapifoo.json": false,
	} {
		require.Equal(t, want, apidesc.IsName(path), path)
	}
	for _, place := range apidesc.Places() {
		require.True(t, apidesc.IsName("/"+place), place)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		page string
		want []string
	}{
		"Redoc":             {`<body><redoc spec-url="/openapi.yaml" lazy-rendering></redoc></body>`, []string{"/openapi.yaml"}},
		"Redoc by script":   {`<div id="r"></div><script>Redoc.init('api/openapi.json', {}, document.getElementById("r"))</script>`, []string{"api/openapi.json"}},
		"FastAPI":           {"<script>\nconst ui = SwaggerUIBundle({\n    url: '/openapi.json',\n    \"dom_id\": \"#swagger-ui\"})</script>", []string{"/openapi.json"}},
		"several":           {`<script>window.ui = SwaggerUIBundle({urls: [{"url": "a.json", name: "A"}, {url:"b.json",name:"B"}], dom_id: "#x"})</script>`, []string{"a.json", "b.json"}},
		"Scalar":            {`<script id="api-reference" data-url="/api.json"></script>`, []string{"/api.json"}},
		"Scalar by script":  {`<script>Scalar.createApiReference('#app', { url: "/api.yaml" })</script>`, []string{"/api.yaml"}},
		"RapiDoc":           {`<rapi-doc spec-url = "a.yaml"/><rapi-doc spec-url="a.yaml">`, []string{"a.yaml"}},
		"Elements":          {`<elements-api apiDescriptionUrl="x.yaml" router="hash"/>`, []string{"x.yaml"}},
		"a text about it":   {`<p>Write <code>&lt;redoc spec-url="/a.yaml"&gt;</code> or SwaggerUIBundle({url: "/b.json"})</p>`, nil},
		"another script":    {`<p>api-reference</p><script>fetch({url: "/a.json"})</script>`, nil},
		"an address before": {`<script>var o = {url: "/no.json"}; SwaggerUIBundle({url: "/yes.json"})</script>`, []string{"/yes.json"}},
		"a comment":         {`<!-- <redoc spec-url="/a.yaml"> --><script src="x.js"></script>spec-url`, nil},
	} {
		require.Equal(t, tt.want, apidesc.Shown([]byte(tt.page)), name)
	}
}

func TestListed(t *testing.T) {
	t.Parallel()
	got, err := apidesc.Listed([]byte(`{"linkset":[{"anchor":"https://a.example/foo","service-desc":[{"href":"https://a.example/foo/spec","type":"application/yaml"},{"href":""}],"service-doc":[{"href":"https://a.example/doc"}]},
		{"anchor":"https://a.example/bar","item":[{"href":"https://a.example/bar"}]},{"service-desc":"no list"},{"service-desc":[{"href":"/two.json"},{"href":"/two.json"}]}]}`))
	require.NoError(t, err)
	require.Equal(t, []string{"https://a.example/foo/spec", "/two.json"}, got)
	_, err = apidesc.Listed([]byte("<html>"))
	require.ErrorContains(t, err, "reading the API catalog")
}

func FuzzShown(f *testing.F) {
	f.Add([]byte(`<redoc spec-url="/a"><script>SwaggerUIBundle({url:"/b"})</script>`))
	f.Fuzz(func(t *testing.T, page []byte) {
		got := apidesc.Shown(page)
		require.LessOrEqual(t, len(got), 50)
		require.NotContains(t, got, "")
	})
}

func FuzzListed(f *testing.F) {
	f.Add([]byte(`{"linkset":[{"service-desc":[{"href":"/a"}]}]}`))
	f.Fuzz(func(t *testing.T, catalog []byte) {
		got, err := apidesc.Listed(catalog)
		require.LessOrEqual(t, len(got), 50)
		if err != nil {
			require.Empty(t, got)
		}
	})
}
