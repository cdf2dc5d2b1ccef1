/* For tests of credentials: a loop whose clock only advances when a test says so, a directory for
 * token files, and a plugin that ends when a test says so. */
#ifndef VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_FIXTURE_TEST_H
#define VIGIL_KUBECLIENT_CONNECT_CREDENTIALS_FIXTURE_TEST_H

#include "base/temp_dir_test.h"
#include "io/loop.h"
#include "kubeclient/connect/child.h"
#include "kubeclient/connect/credentials.h"

#define V1 "client.authentication.k8s.io/v1"

struct fixture {
    struct child_runner runner;
    struct child child;
    struct child_params params; /* parameters of the plugin that runs */
    bool runs;
    unsigned starts;
    bool cannot_start;
    unsigned certificates;         /* calls of on_certificate */
    enum status certificate_error; /* what it returns */

    struct clock_sim clock;
    struct loop *loop;
    char dir[TEMP_DIR_BYTES];
    char path[TEMP_DIR_BYTES + 8];
    struct kubeconfig config;
    struct credentials *credentials;
    struct error error;
};

static inline void free_child(struct child *child)
{
    CONTAINER_OF(child, struct fixture, child)->runs = false;
}

static inline enum status start_child(const struct child_runner *runner, struct loop *loop,
                                      const struct child_params *params, struct child **ret_child,
                                      struct error *error)
{
    static const struct child_ops ops = {.free = free_child};
    struct fixture *f = (void *)(uintptr_t)CONTAINER_OF(runner, const struct fixture, runner);
    assert_ptr_equal(loop, f->loop);
    assert_false(f->runs);
    f->starts++;
    if (f->cannot_start)
        return error_set(error, ST_IO, "Permission denied");
    f->runs = true;
    f->params = *params;
    f->child.ops = &ops;
    *ret_child = &f->child;
    return ST_OK;
}

static inline enum status on_certificate(void *ctx, struct error *error)
{
    struct fixture *f = ctx;
    f->certificates++;
    if (f->certificate_error != ST_OK)
        return error_set(error, f->certificate_error, "bad certificate");
    return ST_OK;
}

static inline int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof(f));
    clock_sim_init(&f.clock, INT64_C(1700000000) * NS_PER_S);
    assert_int_equal(loop_new(&f.clock.clock, &f.loop), ST_OK);
    f.runner.start = start_child;
    temp_dir_make_fast("credentials", f.dir);
    snprintf(f.path, sizeof(f.path), "%s/token", f.dir);
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    credentials_free(f->credentials);
    assert_false(f->runs);
    loop_free(f->loop);
    temp_dir_remove(f->dir);
    return 0;
}

static inline enum status make(struct fixture *f)
{
    struct credentials_hooks hooks = {on_certificate, f};
    enum status status =
        credentials_new_over(&f->runner, f->loop, &f->config, hooks, &f->credentials, &f->error);
    if (status == ST_OK)
        credentials_check(f->credentials);
    return status;
}

static inline void expect_refusal(struct fixture *f, const char *text)
{
    assert_int_not_equal(make(f), ST_OK);
    if (!strstr(f->error.text, text))
        assert_string_equal(f->error.text, text);
}

static inline void expect(struct fixture *f, const char *wanted)
{
    struct credentials_waiter waiter = {0};
    struct slice found;
    assert_int_equal(credentials_get(f->credentials, &waiter, &found, &f->error), ST_OK);
    credentials_check(f->credentials);
    if (!slice_equal(found, slice_from_text(wanted))) {
        print_error("%.*s\n", SLICE_ARGS(found));
        assert_string_equal("", wanted);
    }
}

static inline void advance(struct fixture *f, int64_t by_ns)
{
    clock_sim_advance(&f->clock, by_ns);
    loop_turn(f->loop, 0);
}

#endif
