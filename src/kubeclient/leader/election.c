#include "kubeclient/leader/election.h"

#include "base/clock.h"

#include <assert.h>
#include <stdio.h>

#define TO(state) (1u << ELECTION_##state)

static const unsigned election_moves[] = {
    [ELECTION_WAITING] = TO(READING) | TO(WRITING),
    [ELECTION_READING] = TO(WAITING) | TO(WRITING),
    [ELECTION_WRITING] = TO(WAITING) | TO(READING),
};

void election_init(struct election *election, const struct election_options *options, uint64_t seed)
{
    assert(strlen(options->identity) < LEASE_IDENTITY_BYTES);
    assert(options->retry_ns < options->deadline_ns);
    assert(options->deadline_ns < options->duration_ns);
    assert(options->duration_ns % NS_PER_S == 0); /* as a Lease can say it */
    *election = (struct election){.options = *options};
    random_init(&election->random, seed);
}

static bool is_ours(const struct election *election)
{
    return strcmp(election->observed.holder, election->options.identity) == 0;
}

static void observe(struct election *election, const struct lease_record *record, int64_t now_ns)
{
    if (election->observed_ns && lease_record_equal(&election->observed, record))
        return;
    election->observed = *record;
    election->observed_ns = now_ns;
}

/* The holder may still be leading. */
static bool is_held(const struct election *election, int64_t now_ns)
{
    int64_t until_ns = clock_add(election->observed_ns, election->observed.duration_s * NS_PER_S);
    return election->observed.holder[0] && until_ns > now_ns;
}

/* -- One attempt -- */

static void prepare_record(struct election *election, int64_t wall_ns)
{
    struct lease_record *wanted = &election->wanted;
    const struct lease_record *observed = &election->observed;
    *wanted = (struct lease_record){.duration_s = election->options.duration_ns / NS_PER_S};
    snprintf(wanted->holder, sizeof(wanted->holder), "%s", election->options.identity);
    lease_time(wall_ns, wanted->renew_time);
    if (is_ours(election)) {
        wanted->transitions = observed->transitions;
        memcpy(wanted->acquire_time, observed->acquire_time, sizeof(wanted->acquire_time));
    } else {
        bool counts = !election->creates && observed->transitions < INT32_MAX;
        wanted->transitions = observed->transitions + counts;
    }
    if (!wanted->acquire_time[0])
        memcpy(wanted->acquire_time, wanted->renew_time, sizeof(wanted->acquire_time));
}

void election_begin(struct election *election, int64_t now_ns, int64_t wall_ns)
{
    assert(election->state == ELECTION_WAITING);
    election->begun_ns = now_ns;
    election->from_memory = election->leads && is_held(election, now_ns);
    /* A leader renews the lease as it has written it last. If another client has changed it since,
     * the server refuses, and the lease is read first. */
    if (election->from_memory) {
        election->creates = false;
        prepare_record(election, wall_ns);
        STATE_MOVE(election->state, election_moves, ELECTION_WRITING);
    } else {
        STATE_MOVE(election->state, election_moves, ELECTION_READING);
    }
}

/* As in client-go, candidates wait up to 2.2 times the period, so that they do not meet. */
static void wait_for_next(struct election *election, int64_t now_ns)
{
    int64_t period = election->options.retry_ns;
    if (!election->leads)
        period += (int64_t)random_below(&election->random, (uint64_t)(period / 5 * 6) + 1);
    election->next_ns = clock_add(now_ns, period);
    STATE_MOVE(election->state, election_moves, ELECTION_WAITING);
}

void election_read(struct election *election, struct slice lease, int64_t now_ns, int64_t wall_ns)
{
    assert(election->state == ELECTION_READING);
    struct lease_record record = {0};
    if (lease.len)
        lease_record_read(lease, &record);
    observe(election, &record, now_ns);
    if (is_held(election, now_ns) && !is_ours(election)) {
        election->leads = false;
        wait_for_next(election, now_ns);
    } else {
        election->creates = lease.len == 0;
        prepare_record(election, wall_ns);
        STATE_MOVE(election->state, election_moves, ELECTION_WRITING);
    }
}

void election_wrote(struct election *election, int64_t now_ns)
{
    assert(election->state == ELECTION_WRITING);
    observe(election, &election->wanted, now_ns);
    election->leads = true;
    election->renewed_ns = election->begun_ns;
    wait_for_next(election, now_ns);
    election->give_up_ns = clock_add(election->next_ns, election->options.deadline_ns);
}

void election_failed(struct election *election, int64_t now_ns)
{
    assert(election->state != ELECTION_WAITING);
    if (election->state == ELECTION_WRITING && election->from_memory) {
        election->from_memory = false;
        STATE_MOVE(election->state, election_moves, ELECTION_READING);
    } else {
        wait_for_next(election, now_ns);
    }
}

/* -- The leader -- */

/* An attempt that succeeded late may leave less time than the deadline: the lease must not run out
 * for the others while we lead. */
int64_t election_deadline_ns(const struct election *election)
{
    if (!election->leads)
        return CLOCK_NEVER;
    int64_t runs_out_ns = clock_add(election->renewed_ns, election->options.duration_ns);
    return election->give_up_ns < runs_out_ns ? election->give_up_ns : runs_out_ns;
}

void election_stop_leading(struct election *election, int64_t now_ns)
{
    assert(election->leads);
    election->leads = false;
    if (election->state != ELECTION_WAITING)
        wait_for_next(election, now_ns);
}

struct lease_record election_release(const struct election *election, int64_t wall_ns)
{
    struct lease_record record = {
        .duration_s = 1,
        .transitions = election->observed.transitions,
    };
    lease_time(wall_ns, record.renew_time);
    lease_time(wall_ns, record.acquire_time);
    return record;
}

const char *election_leader(const struct election *election)
{
    return election->observed.holder;
}

void election_check(const struct election *election)
{
    assert(election->state <= ELECTION_WRITING);
    if (election->leads) {
        assert(is_ours(election));
        assert(election->renewed_ns <= election->observed_ns);
        assert(election_deadline_ns(election) != CLOCK_NEVER);
    }
    if (election->state == ELECTION_WRITING)
        assert(strcmp(election->wanted.holder, election->options.identity) == 0);
    if (election->from_memory && election->state == ELECTION_WRITING)
        assert(!election->creates);
}
