/* Candidates and one Lease, on a clock and with failures that the test chooses. */
#include "kubeclient/leader/election.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define DURATION_NS (15 * NS_PER_S)
#define DEADLINE_NS (10 * NS_PER_S)
#define RETRY_NS (2 * NS_PER_S)

enum { CANDIDATES = 3 };

/* A request on its way. It takes effect at the server at its time, also if the candidate has
 * forgotten it. */
struct request {
    bool pending, forgotten, lost;
    bool writes, creates;
    int64_t arrives_ns, answered_ns;
    struct buf body;
    uint64_t based_on; /* the version that is replaced */
    bool ok;           /* after its arrival */
};

struct candidate {
    struct election election;
    char identity[16];
    struct buf lease; /* as it was read or written last */
    uint64_t version;
    struct request request;
};

struct model {
    struct candidate candidates[CANDIDATES];
    struct buf lease; /* at the server */
    uint64_t version; /* 0: there is none */
    int64_t now_ns;
    struct random random;
    bool faults;
    unsigned changes; /* changes of the leader */
    int leader;       /* -1: none */
};

static void model_init(struct model *m, uint64_t seed)
{
    *m = (struct model){.now_ns = NS_PER_S, .leader = -1};
    random_init(&m->random, seed);
    for (size_t i = 0; i < CANDIDATES; i++) {
        struct candidate *c = &m->candidates[i];
        snprintf(c->identity, sizeof(c->identity), "candidate-%zu", i);
        struct election_options options = {
            .identity = c->identity,
            .duration_ns = DURATION_NS,
            .deadline_ns = DEADLINE_NS,
            .retry_ns = RETRY_NS,
        };
        election_init(&c->election, &options, random_u64(&m->random));
    }
}

static void model_fini(struct model *m)
{
    for (size_t i = 0; i < CANDIDATES; i++) {
        buf_fini(&m->candidates[i].lease);
        buf_fini(&m->candidates[i].request.body);
    }
    buf_fini(&m->lease);
}

static void set(struct buf *to, struct slice bytes)
{
    to->len = 0;
    assert_int_equal(buf_append(to, bytes), ST_OK);
}

/* The clocks of the candidates show different times. */
static int64_t wall(const struct model *m, const struct candidate *c)
{
    return INT64_C(1700000000) * NS_PER_S + m->now_ns + (c - m->candidates) * 3600 * NS_PER_S;
}

/* -- Requests -- */

static int64_t delay(struct model *m)
{
    return m->faults && random_chance(&m->random, 1, 6) ? random_between(&m->random, 1, 9000) * MS
                                                        : random_between(&m->random, 1, 50) * MS;
}

static void send_request(struct model *m, struct candidate *c)
{
    struct request *r = &c->request;
    if (r->pending)
        return; /* one that was forgotten is still on its way; the next one waits for it */
    bool writes = c->election.state == ELECTION_WRITING;
    *r = (struct request){.pending = true, .writes = writes, .body = r->body};
    r->creates = writes && c->election.creates;
    r->arrives_ns = m->now_ns + delay(m);
    r->answered_ns = r->arrives_ns + delay(m);
    r->lost = m->faults && random_chance(&m->random, 1, 8);
    r->based_on = c->version;
    r->body.len = 0;
    if (r->creates)
        assert_int_equal(lease_write_new(&r->body, "default", "lock", &c->election.wanted), ST_OK);
    else if (writes)
        assert_int_equal(lease_write_update(&r->body, buf_slice(&c->lease), &c->election.wanted),
                         ST_OK);
}

static void arrive(struct model *m, struct request *r)
{
    if (m->faults && random_chance(&m->random, 1, 10))
        return; /* the server failed */
    if (!r->writes) {
        r->ok = true;
        set(&r->body, buf_slice(&m->lease));
        r->based_on = m->version;
    } else if (r->creates ? m->version == 0 : m->version != 0 && m->version == r->based_on) {
        r->ok = true;
        set(&m->lease, buf_slice(&r->body));
        r->based_on = ++m->version;
    }
}

static void answer(struct model *m, struct candidate *c)
{
    struct request *r = &c->request;
    r->pending = false;
    if (r->forgotten)
        return;
    if (!r->ok || r->lost) {
        election_failed(&c->election, m->now_ns);
    } else {
        set(&c->lease, buf_slice(&r->body));
        c->version = r->based_on;
        if (r->writes)
            election_wrote(&c->election, m->now_ns);
        else
            election_read(&c->election, buf_slice(&c->lease), m->now_ns, wall(m, c));
    }
    if (c->election.state != ELECTION_WAITING)
        send_request(m, c);
}

/* -- Time -- */

static void step_candidate(struct model *m, struct candidate *c)
{
    struct request *r = &c->request;
    if (r->pending && r->arrives_ns <= m->now_ns && r->arrives_ns > m->now_ns - 10 * MS)
        arrive(m, r);
    if (r->pending && r->answered_ns <= m->now_ns)
        answer(m, c);
    if (election_deadline_ns(&c->election) <= m->now_ns) {
        election_stop_leading(&c->election, m->now_ns);
        r->forgotten = true;
    }
    if (!r->pending && c->election.state == ELECTION_WAITING && c->election.next_ns <= m->now_ns) {
        election_begin(&c->election, m->now_ns, wall(m, c));
        send_request(m, c);
    }
    election_check(&c->election);
}

static void step(struct model *m)
{
    int leader = -1;
    m->now_ns += 10 * MS;
    for (int i = 0; i < CANDIDATES; i++)
        step_candidate(m, &m->candidates[i]);
    for (int i = 0; i < CANDIDATES; i++) {
        if (!m->candidates[i].election.leads)
            continue;
        assert_int_equal(leader, -1); /* never two */
        leader = i;
    }
    m->changes += leader >= 0 && leader != m->leader;
    if (leader >= 0)
        m->leader = leader;
}

static void run(struct model *m, int64_t seconds)
{
    for (int64_t end_ns = m->now_ns + seconds * NS_PER_S; m->now_ns < end_ns;)
        step(m);
}

static bool one_leads(const struct model *m)
{
    return m->leader >= 0 && m->candidates[m->leader].election.leads;
}

/* -- Tests -- */

static void there_is_always_at_most_one_leader(void **state)
{
    (void)state;
    unsigned changes = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct model m;
        model_init(&m, seed);
        m.faults = true;
        run(&m, 600);
        changes += m.changes;
        m.faults = false;
        run(&m, 60);
        assert_true(one_leads(&m));
        model_fini(&m);
    }
    assert_true(changes > 80); /* the faults make candidates lose the lease */
}

static void a_leader_that_renews_stays(void **state)
{
    (void)state;
    struct model m;
    model_init(&m, 7);
    run(&m, 3600);
    assert_int_equal(m.changes, 1);
    assert_int_equal(m.candidates[m.leader].election.observed.transitions, 0);
    model_fini(&m);
}

static void a_released_lease_is_taken_at_once(void **state)
{
    (void)state;
    struct model m;
    model_init(&m, 8);
    run(&m, 20);
    struct candidate *first = &m.candidates[m.leader];
    struct lease_record released = election_release(&first->election, wall(&m, first));
    AUTO(buf_fini) struct buf body = {0};
    assert_int_equal(lease_write_update(&body, buf_slice(&m.lease), &released), ST_OK);
    set(&m.lease, buf_slice(&body));
    m.version++;
    election_stop_leading(&first->election, m.now_ns);
    first->election.next_ns = CLOCK_NEVER;
    first->request.forgotten = true;
    int before = m.leader;
    run(&m, 6);
    assert_true(one_leads(&m));
    assert_int_not_equal(m.leader, before);
    assert_int_equal(m.candidates[m.leader].election.observed.transitions, 1);
    model_fini(&m);
}

static void a_silent_leader_is_replaced_after_the_duration(void **state)
{
    (void)state;
    struct model m;
    model_init(&m, 9);
    run(&m, 20);
    struct candidate *first = &m.candidates[m.leader];
    election_stop_leading(&first->election, m.now_ns);
    first->election.next_ns = CLOCK_NEVER;
    first->request.forgotten = true;
    run(&m, 12);
    assert_false(one_leads(&m));
    run(&m, 10);
    assert_true(one_leads(&m));
    model_fini(&m);
}

static void a_leader_that_sees_another_holder_stops(void **state)
{
    (void)state;
    struct model m;
    model_init(&m, 10);
    run(&m, 20);
    struct candidate *first = &m.candidates[m.leader];
    struct lease_record other = first->election.observed;
    snprintf(other.holder, sizeof(other.holder), "another one");
    AUTO(buf_fini) struct buf body = {0};
    assert_int_equal(lease_write_update(&body, buf_slice(&m.lease), &other), ST_OK);
    set(&m.lease, buf_slice(&body));
    m.version++;
    run(&m, 4);
    assert_false(first->election.leads);
    assert_string_equal(election_leader(&first->election), "another one");
    model_fini(&m);
}

static void a_record_survives_writing_and_reading(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf lease = {0}, updated = {0};
    struct lease_record record = {.duration_s = 15, .transitions = 4}, again;
    snprintf(record.holder, sizeof(record.holder), "a \"quoted\" name");
    lease_time(INT64_C(1700000000123456789), record.renew_time);
    assert_string_equal(record.renew_time, "2023-11-14T22:13:20.123456Z");
    lease_time(INT64_C(1700000000000000000), record.acquire_time);
    assert_int_equal(lease_write_new(&lease, "default", "lock", &record), ST_OK);
    lease_record_read(buf_slice(&lease), &again);
    assert_true(lease_record_equal(&record, &again));

    struct slice labelled =
        SLICE_LITERAL("{\"metadata\":{\"labels\":{\"a\":\"b\"},\"resourceVersion\":"
                      "\"7\"},\"spec\":{\"holderIdentity\":null},\"kind\":\"Lease\"}");
    assert_int_equal(lease_write_update(&updated, labelled, &record), ST_OK);
    lease_record_read(buf_slice(&updated), &again);
    assert_true(lease_record_equal(&record, &again));
    assert_int_equal(buf_append(&updated, slice_of("", 1)), ST_OK);
    assert_non_null(
        strstr((char *)updated.ptr, "{\"labels\":{\"a\":\"b\"},\"resourceVersion\":\"7\"}"));
    assert_non_null(strstr((char *)updated.ptr, "\"kind\":\"Lease\""));
}

static void strange_leases_belong_to_others(void **state)
{
    (void)state;
    struct lease_record record;
    lease_record_read(SLICE_LITERAL("{}"), &record);
    assert_string_equal(record.holder, "");
    lease_record_read(
        SLICE_LITERAL("{\"spec\":{\"holderIdentity\":7,\"leaseDurationSeconds\":-3}}"), &record);
    assert_string_equal(record.holder, "");
    assert_int_equal(record.duration_s, 0);
    AUTO(buf_fini) struct buf lease = {0};
    assert_int_equal(buf_append(&lease, SLICE_LITERAL("{\"spec\":{\"holderIdentity\":\"")), ST_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_append(&lease, SLICE_LITERAL("x")), ST_OK);
    assert_int_equal(buf_append(&lease, SLICE_LITERAL("\"}}")), ST_OK);
    lease_record_read(buf_slice(&lease), &record);
    assert_int_equal(strlen(record.holder), LEASE_IDENTITY_BYTES - 1);
    assert_int_equal(lease_write_update(&lease, SLICE_LITERAL("[1]"), &record), ST_MALFORMED);
}

/* Both numbers of a Lease have 32 bits, so the next count of leaders must not exceed them. */
static void numbers_of_a_lease_stay_in_their_range(void **state)
{
    (void)state;
    struct model m;
    model_init(&m, 11);
    struct election *election = &m.candidates[0].election;
    election_begin(election, m.now_ns, m.now_ns);
    election_read(election,
                  SLICE_LITERAL("{\"spec\":{\"leaseTransitions\":9223372036854775807,"
                                "\"leaseDurationSeconds\":9223372036854775807}}"),
                  m.now_ns, m.now_ns);
    assert_int_equal(election->state, ELECTION_WRITING);
    assert_int_equal(election->observed.duration_s, INT32_MAX);
    assert_int_equal(election->wanted.transitions, INT32_MAX);
    model_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_always_at_most_one_leader),
        cmocka_unit_test(a_leader_that_renews_stays),
        cmocka_unit_test(a_released_lease_is_taken_at_once),
        cmocka_unit_test(a_silent_leader_is_replaced_after_the_duration),
        cmocka_unit_test(a_leader_that_sees_another_holder_stops),
        cmocka_unit_test(a_record_survives_writing_and_reading),
        cmocka_unit_test(strange_leases_belong_to_others),
        cmocka_unit_test(numbers_of_a_lease_stay_in_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
