/* Credentials of an exec plugin: when it is run, and what the requests that wait for it get. */
#include "base/failing_memory_test.h"
#include "kubeclient/connect/credentials_fixture_test.h"

/* A request that needs credentials. */
struct request {
    struct credentials_waiter waiter;
    struct fixture *fixture;
    bool waits;
    unsigned answers;
    enum status status;
    char text[1024]; /* the authorization or the error */
    bool again;      /* when it has been answered, it begins again */
    struct request *cancels;
};

static void ask(struct request *r);

static void answer(struct request *r, enum status status, struct slice authorization,
                   const struct error *error)
{
    r->waits = false;
    r->answers++;
    r->status = status;
    if (status == ST_OK)
        snprintf(r->text, sizeof(r->text), "%.*s", SLICE_ARGS(authorization));
    else
        snprintf(r->text, sizeof(r->text), "%s", error->text);
    if (r->cancels)
        credentials_waiter_cancel(&r->cancels->waiter);
    if (r->again) {
        r->again = false;
        ask(r);
    }
}

static void on_ready(struct credentials_waiter *waiter, enum status status,
                     struct slice authorization, const struct error *error)
{
    answer(CONTAINER_OF(waiter, struct request, waiter), status, authorization, error);
}

static void ask(struct request *r)
{
    struct slice authorization;
    struct error error = {0};
    r->waiter.ready = on_ready;
    enum status status =
        credentials_get(r->fixture->credentials, &r->waiter, &authorization, &error);
    r->waits = status == ST_AGAIN;
    if (!r->waits)
        answer(r, status, authorization, &error);
    credentials_check(r->fixture->credentials);
}

static void expect_answer(const struct request *r, enum status status, const char *text)
{
    assert_true(r->answers > 0);
    assert_int_equal(r->status, status);
    if (!strstr(r->text, text))
        assert_string_equal(r->text, text);
}

static void use_plugin(struct fixture *f)
{
    f->config.server = "https://s";
    f->config.exec.command = "/bin/plugin";
    f->config.exec.api_version = V1;
    assert_int_equal(make(f), ST_OK);
}

static void end_plugin(struct fixture *f, int code, const char *output)
{
    struct child_result result = {.number = code, .output = slice_from_text(output)};
    assert_true(f->runs);
    f->params.done(f->params.ctx, &result);
    credentials_check(f->credentials);
}

#define STATUS(fields) \
    "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":{" fields "}}"

static void end_with_token(struct fixture *f, const char *token)
{
    char text[256];
    snprintf(text, sizeof(text), STATUS("\"token\":\"%s\""), token);
    end_plugin(f, 0, text);
}

/* The real-time clock of the tests begins on 2023-11-14 at 22:13:20. */
#define EXPIRES_IN_A_MINUTE "\"expirationTimestamp\":\"2023-11-14T22:14:20Z\""
#define EXPIRED "\"expirationTimestamp\":\"2023-11-14T22:13:00Z\""

static void one_run_serves_all_requests(void **state)
{
    struct fixture *f = *state;
    struct request requests[3];
    use_plugin(f);
    assert_int_equal(f->starts, 0); /* not before it is needed */
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        requests[i] = (struct request){.fixture = f};
        ask(&requests[i]);
        assert_int_equal(requests[i].answers, 0);
    }
    assert_int_equal(f->starts, 1);
    end_with_token(f, "t-1");
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        assert_int_equal(requests[i].answers, 1);
        expect_answer(&requests[i], ST_OK, "Bearer t-1");
    }
    advance(f, INT64_C(1000000) * NS_PER_S);
    expect(f, "Bearer t-1");
    assert_int_equal(f->starts, 1);
    assert_int_equal(f->certificates, 0);
}

static void expired_credentials_are_replaced(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    end_plugin(f, 0, STATUS("\"token\":\"t-1\"," EXPIRES_IN_A_MINUTE));
    advance(f, 60 * NS_PER_S);
    expect(f, "Bearer t-1"); /* until then, as in client-go */
    uint64_t generation = credentials_generation(f->credentials);
    advance(f, 1);
    ask(&r);
    assert_int_equal(f->starts, 2);
    assert_int_equal(r.answers, 1);
    end_with_token(f, "t-2");
    expect_answer(&r, ST_OK, "Bearer t-2");
    assert_int_not_equal(credentials_generation(f->credentials), generation);
}

static void clock_of_the_machine_may_be_set_back(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    end_plugin(f, 0, STATUS("\"token\":\"t-1\"," EXPIRES_IN_A_MINUTE));
    f->clock.real_offset_ns -= 3600 * NS_PER_S;
    advance(f, 600 * NS_PER_S);
    expect(f, "Bearer t-1");
    f->clock.real_offset_ns += 3600 * NS_PER_S;
    ask(&r);
    assert_int_equal(f->starts, 2);
    credentials_free(TAKE(f->credentials)); /* the request still waits */
}

static void refused_credentials_are_replaced_once(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f}, other = {.fixture = f};
    use_plugin(f);
    ask(&r);
    end_with_token(f, "t-1");
    uint64_t generation = credentials_generation(f->credentials);
    advance(f, 60 * NS_PER_S);
    assert_true(credentials_refused(f->credentials, generation));
    assert_int_equal(f->starts, 1); /* not before the next request */
    ask(&r);
    assert_int_equal(f->starts, 2);
    assert_true(credentials_refused(f->credentials, generation));
    ask(&other);
    end_with_token(f, "t-1"); /* the same token again */
    expect_answer(&r, ST_OK, "Bearer t-1");
    expect_answer(&other, ST_OK, "Bearer t-1");
    assert_int_not_equal(credentials_generation(f->credentials), generation);
    assert_true(credentials_refused(f->credentials, generation)); /* by a request sent before */
    expect(f, "Bearer t-1");
    assert_int_equal(f->starts, 2);
}

static void failure_is_reported_to_all_requests(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f}, other = {.fixture = f};
    use_plugin(f);
    ask(&r);
    ask(&other);
    end_plugin(f, 1, "");
    expect_answer(&r, ST_IO, "exec plugin /bin/plugin failed with exit code 1");
    expect_answer(&other, ST_IO, "exec plugin /bin/plugin failed with exit code 1");
    advance(f, 60 * NS_PER_S);
    ask(&r);
    end_plugin(f, 0, "what?");
    expect_answer(&r, ST_MALFORMED, "did not print an ExecCredential");
    advance(f, 60 * NS_PER_S);
    f->cannot_start = true;
    r.answers = 0;
    ask(&r);
    assert_int_equal(r.answers, 0); /* never from within */
    advance(f, 0);
    expect_answer(&r, ST_IO, "exec plugin /bin/plugin cannot be run: Permission denied");
    assert_int_equal(f->starts, 3);
}

/* The pauses after runs that fail at once: a request comes every 100 ms. */
static void failing_plugin_is_run_after_growing_pauses(void **state)
{
    static const int wanted_ms[] = {0, 1000, 3000, 7000, 15000, 25000, 35000};
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    int64_t begin_ns = loop_now_ns(f->loop);
    use_plugin(f);
    while (f->starts < COUNT_OF(wanted_ms) || f->runs) {
        if (!r.waits)
            ask(&r);
        if (f->runs) {
            assert_int_equal((loop_now_ns(f->loop) - begin_ns) / NS_PER_MS,
                             wanted_ms[f->starts - 1]);
            end_plugin(f, 1, "");
            assert_int_equal(r.answers, f->starts);
        }
        advance(f, 100 * NS_PER_MS);
    }
    assert_int_equal(f->starts, COUNT_OF(wanted_ms));
    /* A request that comes a minute later does not wait, and the pauses begin with the first. */
    advance(f, 60 * NS_PER_S);
    ask(&r);
    assert_true(f->runs);
    end_plugin(f, 1, "");
    ask(&r);
    assert_false(f->runs);
    advance(f, 1 * NS_PER_S);
    assert_true(f->runs);
    credentials_free(TAKE(f->credentials)); /* the request still waits */
}

/* A wrong clock must not make every request slow: what the plugin gave is used until the pause is
 * over. */
static void credentials_that_have_expired_are_used_for_a_while(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    unsigned answers = 1;
    for (int i = 0; i < 6000; i++, advance(f, 10 * NS_PER_MS)) {
        if (f->runs)
            end_plugin(f, 0, STATUS("\"token\":\"t-1\"," EXPIRED));
        expect_answer(&r, ST_OK, "Bearer t-1");
        assert_int_equal(r.answers, answers++);
        ask(&r);
        if (f->runs)
            end_plugin(f, 0, STATUS("\"token\":\"t-1\"," EXPIRED));
    }
    assert_in_range(f->starts, 8, 10); /* in a minute: after 0, 1, 3, 7, 15, 25, … seconds */
}

/* The server refuses everything. */
static void refused_plugin_is_run_after_growing_pauses(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    for (int i = 0; i < 6000; i++, advance(f, 10 * NS_PER_MS)) {
        if (f->runs)
            end_with_token(f, "t-1");
        if (!r.answers)
            continue;
        r.answers = 0;
        assert_true(credentials_refused(f->credentials, credentials_generation(f->credentials)));
        ask(&r);
        assert_int_equal(r.answers, 0);
    }
    assert_in_range(f->starts, 8, 10);
    credentials_free(TAKE(f->credentials)); /* the request still waits */
}

static void cancelled_request_is_not_called(void **state)
{
    struct fixture *f = *state;
    struct request r[3] = {{.fixture = f}, {.fixture = f}, {.fixture = f}};
    use_plugin(f);
    credentials_waiter_cancel(&r[0].waiter); /* it does not wait */
    for (int i = 0; i < 3; i++)
        ask(&r[i]);
    credentials_waiter_cancel(&r[0].waiter);
    r[1].cancels = &r[2];
    end_with_token(f, "t-1");
    assert_int_equal(r[0].answers, 0);
    assert_int_equal(r[1].answers, 1);
    assert_int_equal(r[2].answers, 0);
}

/* The pause ends without a run if all requests have been cancelled. */
static void plugin_is_not_run_for_cancelled_requests(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    end_plugin(f, 1, "");
    ask(&r);
    credentials_waiter_cancel(&r.waiter);
    advance(f, 5 * NS_PER_S);
    credentials_check(f->credentials);
    assert_int_equal(f->starts, 1);
    ask(&r);
    assert_int_equal(f->starts, 2);
    credentials_free(TAKE(f->credentials)); /* the request still waits */
}

/* A request that is repeated at once waits for the next run, which does not begin from within. */
static void failed_request_may_be_repeated_at_once(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f, .again = true}, other = {.fixture = f};
    use_plugin(f);
    ask(&r);
    ask(&other);
    end_plugin(f, 1, "");
    assert_int_equal(r.answers, 1);
    assert_int_equal(other.answers, 1);
    advance(f, 1 * NS_PER_S);
    end_with_token(f, "t-1");
    expect_answer(&r, ST_OK, "Bearer t-1");
    assert_int_equal(r.answers, 2);
    assert_int_equal(other.answers, 1);
}

static void freeing_ends_the_plugin(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    ask(&r);
    credentials_free(TAKE(f->credentials));
    assert_false(f->runs);
    credentials_waiter_cancel(&r.waiter);
    assert_int_equal(make(f), ST_OK);
    ask(&r);
    end_plugin(f, 1, "");
    ask(&r); /* and while it pauses */
    credentials_free(TAKE(f->credentials));
    assert_int_equal(r.answers, 1);
    assert_int_equal(make(f), ST_OK);
    f->cannot_start = true;
    ask(&r); /* and while its failure is on its way */
    credentials_free(TAKE(f->credentials));
    assert_int_equal(r.answers, 1);
}

#define WITH_CERT(name) \
    STATUS("\"clientCertificateData\":\"C" name "\",\"clientKeyData\":\"K" name "\"")

static void run_plugin(struct fixture *f, struct request *r, const char *output)
{
    advance(f, 60 * NS_PER_S);
    credentials_refused(f->credentials, credentials_generation(f->credentials));
    r->answers = 0;
    ask(r);
    end_plugin(f, 0, output);
    assert_int_equal(r->answers, 1);
}

static void expect_certificate(struct fixture *f, unsigned calls, const char *cert, const char *key)
{
    assert_int_equal(f->certificates, calls);
    assert_true(slice_equal(credentials_cert(f->credentials), slice_from_text(cert)));
    assert_true(slice_equal(credentials_key(f->credentials), slice_from_text(key)));
}

static void changed_certificate_is_announced(void **state)
{
    struct fixture *f = *state;
    struct request r = {.fixture = f};
    use_plugin(f);
    run_plugin(f, &r, WITH_CERT("1"));
    expect_answer(&r, ST_OK, "");
    expect_certificate(f, 1, "C1", "K1");
    run_plugin(f, &r, WITH_CERT("1"));
    expect_certificate(f, 1, "C1", "K1");
    run_plugin(f, &r, WITH_CERT("2"));
    expect_certificate(f, 2, "C2", "K2");
    uint64_t generation = credentials_generation(f->credentials);
    f->certificate_error = ST_INVALID;
    run_plugin(f, &r, WITH_CERT("3"));
    expect_answer(&r, ST_INVALID, "bad certificate");
    expect_certificate(f, 3, "C2", "K2");
    assert_int_equal(credentials_generation(f->credentials), generation);
    f->certificate_error = ST_OK;
    run_plugin(f, &r, STATUS("\"token\":\"t\""));
    expect_answer(&r, ST_OK, "Bearer t");
    expect_certificate(f, 4, "", "");
}

/* As in client-go: whatever else the user has is used instead. */
static void plugin_is_not_used_beside_other_credentials(void **state)
{
    struct fixture *f = *state;
    f->config.exec.command = "/bin/plugin";
    f->config.exec.api_version = "unknown";
    f->config.token = "t";
    assert_int_equal(make(f), ST_OK);
    expect(f, "Bearer t");
    credentials_free(TAKE(f->credentials));
    f->config.token = NULL;
    f->config.password = "p";
    assert_int_equal(make(f), ST_OK);
    credentials_free(TAKE(f->credentials));
    f->config.password = NULL;
    f->config.cert.file = "cert";
    f->config.key.data = SLICE_LITERAL("key");
    assert_int_equal(make(f), ST_OK);
    expect(f, "");
    credentials_free(TAKE(f->credentials));
    f->config.key.data = SLICE_EMPTY;
    expect_refusal(f, "version \"unknown\" is not supported");
}

/* -- Missing memory -- */

static void use_plugin_twice(void *ctx)
{
    struct fixture *f = ctx;
    struct request r = {.fixture = f};
    bool may_fail = memory_fail_at != 0;
    enum status status = make(f);
    if (status == ST_OK) {
        ask(&r);
        if (f->runs)
            end_plugin(f, 0, WITH_CERT("1"));
        advance(f, 0); /* if it could not be started */
        assert_int_equal(r.answers, 1);
        status = r.status;
        credentials_check(f->credentials);
        memory_fail_at = 0;
        run_plugin(f, &r, STATUS("\"token\":\"t\""));
        expect_answer(&r, ST_OK, "Bearer t");
        expect_certificate(f, f->certificates, "", "");
        credentials_free(TAKE(f->credentials));
    }
    assert_true(status == ST_OK || (may_fail && status == ST_NOMEM));
}

static void missing_memory_for_a_plugin_is_reported(void **state)
{
    struct fixture *f = *state;
    f->config.server = "https://s";
    f->config.exec.command = "/bin/plugin";
    f->config.exec.api_version = V1;
    assert_true(each_allocation_fails(use_plugin_twice, f) > 5);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_run_serves_all_requests),
        TEST(expired_credentials_are_replaced),
        TEST(clock_of_the_machine_may_be_set_back),
        TEST(refused_credentials_are_replaced_once),
        TEST(failure_is_reported_to_all_requests),
        TEST(failing_plugin_is_run_after_growing_pauses),
        TEST(credentials_that_have_expired_are_used_for_a_while),
        TEST(refused_plugin_is_run_after_growing_pauses),
        TEST(cancelled_request_is_not_called),
        TEST(plugin_is_not_run_for_cancelled_requests),
        TEST(failed_request_may_be_repeated_at_once),
        TEST(freeing_ends_the_plugin),
        TEST(changed_certificate_is_announced),
        TEST(plugin_is_not_used_beside_other_credentials),
        TEST(missing_memory_for_a_plugin_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
