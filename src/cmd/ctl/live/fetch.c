#include "cmd/ctl/live/fetch.h"

#include "base/clock.h"
#include "base/xalloc.h"
#include "cmd/ctl/live/front.h"

#include <stdatomic.h>
#include <vigil/kube/call.h>
#include <vigil/kube/client.h>

enum { URL_BYTES_MAX = 512, PAGE_TIMEOUT_MS = 2000 };

struct fetch {
    vigil_kube *http;
    vigil_kube_call *call;
    atomic_bool ended;
};

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

static bool wants_tls(const struct ctl_globals *globals)
{
    return *globals->ca_file || *globals->cert_file || *globals->key_file ||
           !globals->insecure_transport || globals->insecure_skip_verify;
}

/* False: the endpoint cannot be reached by HTTP. */
static bool make_url(const struct ctl *ctl, const char *endpoint, char url[URL_BYTES_MAX])
{
    const char *scheme = strstr(endpoint, "://")    ? ""
                         : wants_tls(&ctl->globals) ? "https://"
                                                    : "http://";
    int len = snprintf(url, URL_BYTES_MAX, "%s%s", scheme, endpoint);
    return len > 0 && len < URL_BYTES_MAX && strncmp(url, "http", 4) == 0;
}

/* The library for Kubernetes has an HTTP client with TLS; nothing of Kubernetes is used. */
struct fetch *fetch_new(const struct ctl *ctl, const char *endpoint, vigil_error *ret_error)
{
    const struct ctl_globals *globals = &ctl->globals;
    char url[URL_BYTES_MAX];
    vigil_kube_options options;
    vigil_kube_options_init(&options);
    *ret_error = (vigil_error){.code = VIGIL_ERROR_ARGUMENT};
    if (!make_url(ctl, endpoint, url)) {
        snprintf(ret_error->text, sizeof(ret_error->text), "%.100s has no HTTP", endpoint);
        return NULL;
    }
    options.server = url;
    options.http = VIGIL_KUBE_HTTP_1;
    options.ca_file = given(globals->ca_file);
    options.cert_file = given(globals->cert_file);
    options.key_file = given(globals->key_file);
    options.insecure_skip_verify = globals->insecure_skip_verify;
    options.calls_per_second = 0;
    options.connect_timeout_ms = globals->dial_timeout_ns / NS_PER_MS;
    options.call_timeout_ms = globals->command_timeout_ns / NS_PER_MS;
    options.receive_bytes_max = METRICS_BYTES_MAX;
    struct fetch *fetch = xcalloc(1, sizeof(*fetch));
    if (vigil_kube_new(&options, &fetch->http, ret_error) == VIGIL_OK)
        return fetch;
    free(fetch);
    return NULL;
}

void fetch_free(struct fetch *fetch)
{
    if (!fetch)
        return;
    vigil_kube_call_free(fetch->call);
    vigil_kube_free(fetch->http);
    free(fetch);
}

static void on_done(vigil_kube_call *call, void *user)
{
    struct fetch *fetch = user;
    (void)call;
    atomic_store(&fetch->ended, true);
}

static vigil_kube_call *new_call(struct fetch *fetch)
{
    vigil_kube_call_free(fetch->call);
    atomic_store(&fetch->ended, false);
    fetch->call = vigil_kube_request(fetch->http, "GET", "/metrics", NULL, vigil_text(""));
    return fetch->call;
}

void fetch_start(struct fetch *fetch)
{
    if (fetch_is_running(fetch))
        return;
    if (vigil_kube_call_start(new_call(fetch), on_done, fetch) != VIGIL_OK)
        atomic_store(&fetch->ended, true);
}

bool fetch_is_running(const struct fetch *fetch)
{
    return fetch->call && !atomic_load(&fetch->ended);
}

bool fetch_take(struct fetch *fetch, struct metrics *metrics, vigil_error *ret_error)
{
    const vigil_error *error = vigil_kube_call_error(fetch->call);
    bool good = fetch->call && error->code == VIGIL_OK;
    if (good) {
        vigil_bytes body = vigil_kube_call_body(fetch->call);
        metrics_read(metrics, slice_of(body.data, body.size), clock_mono_ns(clock_system()));
    } else {
        *ret_error = *error;
    }
    vigil_kube_call_free(fetch->call);
    fetch->call = NULL;
    return good;
}

bool fetch_page(struct fetch *fetch, const char *path, char *text, size_t room, bool *ret_good)
{
    vigil_kube_call *call = vigil_kube_request(fetch->http, "GET", path, NULL, vigil_text(""));
    vigil_kube_call_set_timeout(call, PAGE_TIMEOUT_MS);
    *ret_good = vigil_kube_call_run(call) == VIGIL_OK;
    vigil_bytes body = vigil_kube_call_body(call);
    bool is_answered = *ret_good || vigil_kube_call_status(call)->code != 0 || body.size > 0;
    struct slice page = slice_of(body.data, body.size);
    /* The server has sent nothing: the error of the call is shown instead. */
    if (page.len == 0)
        page = slice_from_text(vigil_kube_call_error(call)->text);
    /* The first check that has failed, if it is a list of checks. */
    const uint8_t *failed = page.len ? memmem(page.ptr, page.len, "[-]", 3) : NULL;
    if (failed)
        page = slice_sub(page, (size_t)(failed - page.ptr), page.len - (size_t)(failed - page.ptr));
    front_copy_visible(text, room, slice_cut(&page, '\n'));
    vigil_kube_call_free(call);
    return is_answered;
}

bool fetch_run(struct fetch *fetch, struct metrics *metrics, vigil_error *ret_error)
{
    (void)vigil_kube_call_run(new_call(fetch));
    return fetch_take(fetch, metrics, ret_error);
}
