#include "suite.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_SECONDS = 60 };

static void ask_and_read(const char *what, char *ret_answer, size_t bytes)
{
    printf("ask %s\n", what);
    fflush(stdout);
    CHECK(fgets(ret_answer, (int)bytes, stdin));
}

void ask(const char *what)
{
    char answer[64];
    ask_and_read(what, answer, sizeof(answer));
    CHECK(strcmp(answer, "done\n") == 0);
}

long ask_number(const char *what)
{
    char answer[64];
    ask_and_read(what, answer, sizeof(answer));
    CHECK(strncmp(answer, "done ", 5) == 0);
    return strtol(answer + 5, NULL, 10);
}

void default_options(vigil_options *options)
{
    vigil_options_init(options);
    options->endpoints = getenv("VIGIL_ENDPOINTS");
    options->ca_file = getenv("VIGIL_CA_FILE");
    options->user = getenv("VIGIL_USER");
    options->password = getenv("VIGIL_PASSWORD");
    options->call_timeout_ms = WAIT_SECONDS * 1000;
    options->own_thread = getenv("VIGIL_OWN_LOOP") == NULL;
    CHECK(options->endpoints);
}

vigil_client *new_client(void)
{
    vigil_options options;
    vigil_client *client = NULL;
    vigil_error error;
    default_options(&options);
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "cannot make a client: %s\n", error.text);
        abort();
    }
    return client;
}

vigil_client *client_of(const char *endpoints)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.endpoints = endpoints;
    CHECK(endpoints && vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    return client;
}

vigil_client *direct_client(void)
{
    return client_of(getenv("VIGIL_DIRECT"));
}

int member_count(void)
{
    int count = 1;
    for (const char *at = getenv("VIGIL_ENDPOINTS"); *at; at++)
        count += *at == ',';
    return count;
}

vigil_client *client_of_member(int member)
{
    char endpoint[128];
    const char *first = getenv("VIGIL_DIRECT");
    for (; member > 0; member--) {
        first = strchr(first, ',');
        CHECK(first);
        first++;
    }
    snprintf(endpoint, sizeof(endpoint), "%.*s", (int)strcspn(first, ","), first);
    return client_of(endpoint);
}

void wait_for_watchers(long count)
{
    for (int i = 0; ask_number("watchers") != count; i++) {
        if (i == 10 * WAIT_SECONDS) {
            fprintf(stderr, "the server does not have %ld watches\n", count);
            abort();
        }
        usleep(100000);
    }
}

int64_t must(vigil_call *call)
{
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_OK);
    CHECK(vigil_call_header(call));
    int64_t revision = vigil_call_header(call)->revision;
    vigil_call_free(call);
    return revision;
}

int64_t put(vigil_client *client, const char *key, const char *value)
{
    return must(vigil_put(client, vigil_text(key), vigil_text(value), 0));
}

bool progress_is_early(vigil_client *client)
{
    vigil_call *call = vigil_status(client);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    vigil_bytes version = vigil_status_result(call)->version;
    CHECK(version.size > 4);
    bool early = memcmp(version.data, "3.4.", 4) == 0;
    vigil_call_free(call);
    return early;
}

bool bytes_equal(vigil_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && memcmp(bytes.data, text, bytes.size) == 0;
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
        if (pthread_cond_timedwait(&latch->changed, &latch->mutex, &end) == ETIMEDOUT) {
            fprintf(stderr, "waited for %ld, have %ld\n", count, latch->count);
            abort();
        }
    pthread_mutex_unlock(&latch->mutex);
}

long latch_count(struct latch *latch)
{
    pthread_mutex_lock(&latch->mutex);
    long count = latch->count;
    pthread_mutex_unlock(&latch->mutex);
    return count;
}

static const struct {
    const char *name;
    const struct suite_test *tests;
} groups[] = {
    {"kv", kv_tests},
    {"watch", watch_tests},
    {"lease", lease_tests},
    {"life", life_tests},
    {"life", process_tests},
    {"admin", admin_tests},
    {"queue", queue_tests},
    {"parts", part_tests},
    {"objects", object_tests},
    {"objects", object_end_tests},
    {"access", access_tests},
    {"access", part_access_tests},
    {"faults", fault_tests},
    {"faults", object_fault_tests},
    {"faults", part_fault_tests},
    {"cluster", cluster_tests},
    {"credentials", credential_tests},
    {"ported", ported_watch_tests},
    {"ported", ported_v3_watch_tests},
    {"ported-cluster", ported_cluster_tests},
    {"v2", v2_tests},
    {"null", null_tests},
};

/* Without arguments: lists the groups and their tests. With a name: runs that test. */
int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (const struct suite_test *test = groups[i].tests; test->name; test++) {
            if (argc < 2) {
                printf("%s %s\n", groups[i].name, test->name);
            } else if (strcmp(argv[1], test->name) == 0) {
                if (getenv("VIGIL_EMPTY_FIRST"))
                    empty_the_store();
                test->run();
                return 0;
            }
        }
    }
    return argc < 2 ? 0 : 2;
}
