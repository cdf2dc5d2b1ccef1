/* Who the server thinks we are: with credentials of a kubeconfig, VIGIL_KUBECONFIG. */
#include "suite.h"

#include <time.h>

static vigil_kube *configured_kube(void)
{
    vigil_kube_options options;
    vigil_kube *kube = NULL;
    vigil_error error;
    vigil_kube_options_init(&options);
    options.kubeconfig = getenv("VIGIL_KUBECONFIG");
    options.calls_per_second = 0;
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "cannot make a client: %s\n", error.text);
        abort();
    }
    return kube;
}

static vigil_kube_call *review(vigil_kube *kube)
{
    return vigil_kube_request(kube, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                              NULL, vigil_text("{}"));
}

/* The server's name for us; NULL if it refuses us. */
static const char *who_am_i(vigil_kube *kube)
{
    static char name[256];
    vigil_kube_call *call = review(kube);
    int code = vigil_kube_call_run(call);
    CHECK_RUN(call, code == VIGIL_OK || code == VIGIL_ERROR_UNAUTHENTICATED);
    snprintf(name, sizeof(name), "%s", text_at(call, "status.userInfo.username"));
    vigil_kube_call_free(call);
    return code == VIGIL_OK ? name : NULL;
}

static void the_server_knows_the_user(void)
{
    vigil_kube *kube = configured_kube();
    for (int i = 0; i < 3; i++) {
        const char *name = who_am_i(kube);
        CHECK(name && strcmp(name, getenv("VIGIL_EXPECTED_USER")) == 0);
    }
    CHECK(strncmp(vigil_kube_server(kube), "https://", 8) == 0);
    CHECK(strcmp(vigil_kube_namespace(kube), "mine") == 0);
    vigil_kube_free(kube);
}

/* Until the server knows us by this name; at most a minute. */
static void await_user(vigil_kube *kube, const char *expected)
{
    time_t end = time(NULL) + 60;
    const char *name;
    while (!(name = who_am_i(kube)) || strcmp(name, expected) != 0)
        CHECK(time(NULL) < end);
}

/* The plugin prints a token that the server refuses, and then one that it accepts. */
static void refused_credentials_are_renewed(void)
{
    vigil_kube *kube = configured_kube();
    CHECK(!who_am_i(kube));
    await_user(kube, getenv("VIGIL_EXPECTED_USER"));
    vigil_kube_free(kube);
}

/* The plugin prints a certificate that expires at once, and then another one. */
static void a_new_certificate_is_used(void)
{
    vigil_kube *kube = configured_kube();
    const char *first = who_am_i(kube);
    CHECK(first && strcmp(first, getenv("VIGIL_FIRST_USER")) == 0);
    await_user(kube, getenv("VIGIL_EXPECTED_USER"));
    vigil_kube_free(kube);
}

const struct suite_test identity_tests[] = {
    {"the_server_knows_the_user", the_server_knows_the_user},
    {"refused_credentials_are_renewed", refused_credentials_are_renewed},
    {"a_new_certificate_is_used", a_new_certificate_is_used},
    {NULL, NULL},
};
