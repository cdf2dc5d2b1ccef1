/*
 * The commands lock and elect: a key that exists as long as a lease, which this program renews.
 *
 *     granted ──► waiting ──► holding ──► released
 *                    │           └──► lost: the lease has ended
 *                    └──► interrupted
 */
#include "cmd/ctl/kv/kv.h"

#include "base/xalloc.h"
#include "cmd/ctl/kv/child.h"

#include <inttypes.h>
#include <sys/wait.h>

enum { ELECTION_TTL = 60 }; /* seconds, as in etcd's client library */

/* A lease of this program. */
struct tenure {
    struct ctl *ctl;
    vigil_client *client;
    vigil_lease *lease; /* NULL: not kept yet */
    int64_t id;
    bool lost;
};

static void on_lost(vigil_lease *lease, const vigil_error *error, void *user)
{
    (void)lease;
    (void)error;
    struct tenure *tenure = user;
    tenure->lost = true;
}

static void on_done(vigil_call *call, void *user)
{
    (void)call;
    *(bool *)user = true;
}

/* Waits for a call that may take any time. */
static int wait_for(struct tenure *tenure, vigil_call *call)
{
    bool done = false;
    vigil_call_start(call, on_done, &done);
    while (!done && ctl_wait(tenure->client, -1))
        continue;
    if (!done) {
        /* The call must end before its variable goes out of scope: it may complete at any time. */
        vigil_call_cancel(call);
        while (!done)
            ctl_wait(tenure->client, -1);
    }
    if (ctl_interrupted() && vigil_call_error(call)->code == VIGIL_ERROR_CANCELED)
        return ctl_fail(tenure->ctl, CTL_ERROR, "context canceled");
    if (vigil_call_error(call)->code != VIGIL_OK)
        return ctl_fail_with(tenure->ctl, vigil_call_error(call));
    return CTL_OK;
}

static int tenure_init(struct tenure *tenure, struct ctl *ctl, int64_t ttl)
{
    int code;
    ctl_catch_signals(); /* first, so that an early one does not leave a key behind */
    *tenure = (struct tenure){.ctl = ctl, .client = ctl_client(ctl, &code)};
    if (!tenure->client)
        return code;
    vigil_call *grant = vigil_lease_grant(tenure->client, ttl, 0);
    code = wait_for(tenure, grant);
    if (code == CTL_OK) {
        const vigil_lease_grant_response *granted = vigil_lease_grant_result(grant);
        tenure->id = granted->id;
        if (vigil_lease_keep(tenure->client, granted->id, granted->ttl, on_lost, tenure,
                             &tenure->lease) != VIGIL_OK)
            code = ctl_fail(ctl, CTL_ERROR, "the lease cannot be kept");
    }
    vigil_call_free(grant);
    return code;
}

/* Deletes the key with the lease. */
static int tenure_fini(struct tenure *tenure)
{
    vigil_lease_free(tenure->lease);
    /* A lease that has expired took its keys with it. */
    if (!tenure->id || tenure->lost)
        return CTL_OK;
    vigil_call *revoke = vigil_lease_revoke(tenure->client, tenure->id);
    int code = CTL_OK;
    if (vigil_call_run(revoke) != VIGIL_OK)
        code = ctl_fail_with(tenure->ctl, vigil_call_error(revoke));
    vigil_call_free(revoke);
    return code;
}

static int show_key(struct tenure *tenure, struct slice key, bool *ret_exists)
{
    struct pb_range_request request = {.key = key};
    const void *response;
    int code = ctl_call(tenure->ctl, METHOD_RANGE, &request, &response);
    if (code != CTL_OK)
        return code;
    /* The lease may have expired between the lock and this read. */
    *ret_exists = ((const struct pb_range_response *)response)->kvs_count > 0;
    return *ret_exists ? ctl_print(tenure->ctl, &ctl_range_shape, response) : CTL_OK;
}

static void hold(struct tenure *tenure)
{
    while (!tenure->lost && ctl_wait(tenure->client, -1))
        continue;
}

/* -- lock -- */

/* The command keeps the lock until it ends, whatever signals arrive. */
static int run_command(struct tenure *tenure, const vigil_lock_response *lock)
{
    struct ctl *ctl = tenure->ctl;
    char key[4096], revision[64], reason[CHILD_REASON_BYTES];
    snprintf(key, sizeof(key), "ETCD_LOCK_KEY=%.*s", VIGIL_ARGS(lock->key));
    snprintf(revision, sizeof(revision), "ETCD_LOCK_REV=%" PRId64, lock->header->revision);
    struct child_variables variables = {{key, revision}};
    pid_t pid = child_start(ctl->words + 1, ctl->word_count - 1, &variables, reason);
    if (pid < 0)
        return ctl_fail(ctl, CTL_ERROR, "%s", reason);
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        ctl_wait(tenure->client, -1);
    int code = child_exit_code(status, reason);
    if (code == 0)
        return CTL_OK;
    fprintf(stderr, "Error: %s\n", reason);
    return ctl->style == CTL_ETCDCTL_3_4 ? CTL_ERROR : code;
}

static int hold_lock(struct tenure *tenure, const vigil_lock_response *lock)
{
    bool exists = false;
    if (tenure->ctl->word_count > 1)
        return run_command(tenure, lock);
    int code = show_key(tenure, slice_of(lock->key.data, lock->key.size), &exists);
    if (code != CTL_OK)
        return code;
    if (!exists)
        return ctl_fail(tenure->ctl, CTL_ERROR, "lock lost on init");
    hold(tenure);
    return tenure->lost ? ctl_fail(tenure->ctl, CTL_ERROR, "session expired") : CTL_OK;
}

int lock_run(struct ctl *ctl)
{
    const struct lock_flags *given = ctl->flags;
    struct tenure tenure;
    int code = tenure_init(&tenure, ctl, given->ttl);
    if (code == CTL_OK) {
        vigil_call *call = vigil_lock(tenure.client, vigil_text(ctl->words[0]), tenure.id);
        code = wait_for(&tenure, call);
        if (code == CTL_OK)
            code = hold_lock(&tenure, vigil_lock_result(call));
        vigil_call_free(call);
    }
    int released = tenure_fini(&tenure);
    return code != CTL_OK ? code : released;
}

/* -- elect -- */

static int campaign(struct ctl *ctl)
{
    struct tenure tenure;
    bool exists = false;
    int code = tenure_init(&tenure, ctl, ELECTION_TTL);
    if (code == CTL_OK) {
        vigil_call *call = vigil_campaign(tenure.client, vigil_text(ctl->words[0]), tenure.id,
                                          vigil_text(ctl->words[1]));
        code = wait_for(&tenure, call);
        if (code == CTL_OK) {
            const vigil_leader_key *leader = vigil_campaign_result(call)->leader;
            code = show_key(&tenure, slice_of(leader->key.data, leader->key.size), &exists);
        }
        vigil_call_free(call);
    }
    if (code == CTL_OK)
        hold(&tenure);
    if (code == CTL_OK && tenure.lost)
        code = ctl_fail(ctl, CTL_ERROR, "elect: session expired");
    int released = tenure_fini(&tenure);
    return code != CTL_OK ? code : released;
}

/* A leader is shown as the answer to a get. */
static int on_leader(vigil_call *call, const vigil_leader_response *leader, void *user)
{
    (void)call;
    struct pb_key_value kv = {
        .key = slice_of(leader->kv->key.data, leader->kv->key.size),
        .create_revision = leader->kv->create_revision,
        .mod_revision = leader->kv->mod_revision,
        .version = leader->kv->version,
        .value = slice_of(leader->kv->value.data, leader->kv->value.size),
        .lease = leader->kv->lease,
    };
    struct pb_response_header header = {0};
    if (leader->header)
        header = (struct pb_response_header){leader->header->cluster_id, leader->header->member_id,
                                             leader->header->revision, leader->header->raft_term};
    struct pb_range_response response = {.header = &header, .kvs = &kv, .kvs_count = 1};
    ctl_print(user, &ctl_range_shape, &response);
    return VIGIL_PART_CONTINUE;
}

static int observe(struct ctl *ctl)
{
    int code;
    struct tenure tenure = {.ctl = ctl, .client = ctl_client(ctl, &code)};
    if (!tenure.client)
        return code;
    ctl_catch_signals();
    vigil_call *call = vigil_observe(tenure.client, vigil_text(ctl->words[0]), on_leader, ctl);
    bool done = false;
    vigil_call_start(call, on_done, &done);
    while (!done && ctl_wait(tenure.client, -1))
        continue;
    if (done)
        code = ctl_fail(ctl, CTL_ERROR, "elect: observer lost");
    vigil_call_free(call);
    return code;
}

int elect_run(struct ctl *ctl)
{
    const struct elect_flags *given = ctl->flags;
    if (ctl->word_count == 1)
        return given->listen ? observe(ctl)
                             : ctl_refuse(ctl, "no proposal argument but -l not set");
    return given->listen ? ctl_refuse(ctl, "proposal given but -l is set") : campaign(ctl);
}
