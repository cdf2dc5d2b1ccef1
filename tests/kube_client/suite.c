#include "suite.h"

#include <errno.h>
#include <time.h>

enum { WAIT_SECONDS = 60 };

void ask(const char *what)
{
    char answer[64];
    printf("ask %s\n", what);
    fflush(stdout);
    CHECK(fgets(answer, sizeof(answer), stdin) && strcmp(answer, "done\n") == 0);
}

void fail_call(const vigil_kube_call *call, const char *file, int line)
{
    const vigil_error *error = vigil_kube_call_error(call);
    fprintf(stderr, "%s:%d: %s: %s (%d %s)\n", file, line, vigil_code_name(error->code),
            error->text, vigil_kube_call_status(call)->code, vigil_kube_call_status(call)->reason);
    abort();
}

void expect_code(vigil_kube_call *call, int wanted, const char *file, int line)
{
    if (vigil_kube_call_run(call) != wanted)
        fail_call(call, file, line);
    vigil_kube_call_free(call);
}

void expect_refusal(vigil_kube_call *call, int code, const char *reason, const char *file, int line)
{
    const vigil_kube_status *status;
    if (vigil_kube_call_run(call) == VIGIL_OK)
        fail_call(call, file, line);
    status = vigil_kube_call_status(call);
    if (status->code != code || strcmp(status->reason, reason) != 0 || !status->message[0])
        fail_call(call, file, line);
    CHECK(vigil_kube_call_error(call)->outcome == VIGIL_REFUSED);
    CHECK(strncmp(vigil_kube_call_error(call)->text, status->message, VIGIL_ERROR_TEXT_BYTES - 1) ==
          0);
    CHECK(!vigil_kube_call_object(call) && vigil_kube_call_body(call).size == 0);
    vigil_kube_call_free(call);
}

vigil_kube_call *must_run(vigil_kube_call *call)
{
    CHECK_RUN(call, vigil_kube_call_run(call) == VIGIL_OK);
    return call;
}

void default_options(vigil_kube_options *options)
{
    vigil_kube_options_init(options);
    options->server = getenv("VIGIL_KUBE_SERVER");
    options->ca_file = getenv("VIGIL_CA_FILE");
    options->token = getenv("VIGIL_KUBE_TOKEN");
    options->insecure_skip_verify = getenv("VIGIL_INSECURE") != NULL;
    options->name_space = getenv("VIGIL_NAMESPACE");
    options->own_thread = getenv("VIGIL_OWN_LOOP") == NULL;
    options->http = getenv("VIGIL_HTTP2") ? VIGIL_KUBE_HTTP_2 : VIGIL_KUBE_HTTP_ANY;
    options->calls_per_second = 0;
    CHECK(options->server && options->name_space);
}

vigil_kube *new_kube(void)
{
    vigil_kube_options options;
    vigil_kube *kube = NULL;
    vigil_error error;
    default_options(&options);
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "cannot make a client: %s\n", error.text);
        abort();
    }
    return kube;
}

vigil_kube_target configmap(const char *name)
{
    vigil_kube_target target = {.version = "v1", .resource = "configmaps", .name = name};
    target.name_space = getenv("VIGIL_NAMESPACE");
    return target;
}

vigil_bytes configmap_json(const char *name, const char *value)
{
    static char json[1024];
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
             "\"labels\":{\"test\":\"%s\"}},\"data\":{\"key\":\"%s\"}}",
             name, name, value);
    return vigil_text(json);
}

void create_configmap(vigil_kube *kube, const char *name, const char *value)
{
    vigil_kube_target target = configmap(NULL);
    EXPECT(vigil_kube_create(kube, &target, configmap_json(name, value), NULL), VIGIL_OK);
}

const char *text_at(const vigil_kube_call *call, const char *path)
{
    static char text[1024];
    vigil_bytes value;
    if (!vigil_json_find(vigil_kube_call_body(call), path, &value) ||
        !vigil_json_text(value, text, sizeof(text), NULL))
        text[0] = 0;
    return text;
}

void latch_add(struct latch *latch, long n)
{
    pthread_mutex_lock(&latch->mutex);
    latch->count += n;
    pthread_cond_broadcast(&latch->changed);
    pthread_mutex_unlock(&latch->mutex);
}

void latch_wait(struct latch *latch, long count)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_SECONDS;
    pthread_mutex_lock(&latch->mutex);
    while (latch->count < count)
        CHECK(pthread_cond_timedwait(&latch->changed, &latch->mutex, &end) != ETIMEDOUT);
    pthread_mutex_unlock(&latch->mutex);
}

/* Those of "identity", "restart" and "script" need a server of their own. */
static const struct {
    const char *name;
    const struct suite_test *tests;
    bool has_namespace; /* each test has its own */
} groups[] = {
    {"call", call_tests, true},
    {"discovery", discovery_tests, true},
    {"identity", identity_tests, false},
    {"restart", restart_tests, true},
    {"informer", informer_tests, true},
    {"broken", informer_fault_tests, true},
    {"restart", informer_restart_tests, true},
    {"restart", watch_restart_tests, true},
    {"script", script_tests, false},
    {"watch", watch_tests, true},
};

/* For this test; it may exist already. */
static void create_namespace(void)
{
    vigil_kube *kube = new_kube();
    vigil_kube_target all = {.version = "v1", .resource = "namespaces"};
    char json[256];
    snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"%s\"}}", vigil_kube_namespace(kube));
    vigil_kube_call *call = vigil_kube_create(kube, &all, vigil_text(json), NULL);
    if (vigil_kube_call_run(call) != VIGIL_OK && vigil_kube_call_status(call)->code != 409)
        fail_call(call, __FILE__, __LINE__);
    vigil_kube_call_free(call);
    vigil_kube_free(kube);
}

/* Without arguments: lists the groups and their tests. With a name: runs that test. */
int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (const struct suite_test *test = groups[i].tests; test->name; test++) {
            if (argc < 2) {
                printf("%s %s\n", groups[i].name, test->name);
            } else if (strcmp(argv[1], test->name) == 0) {
                if (groups[i].has_namespace)
                    create_namespace();
                test->run();
                return 0;
            }
        }
    }
    return argc < 2 ? 0 : 2;
}
