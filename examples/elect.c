/*
 * Leader election: waits until this program is the leader, says so, and
 * steps down when it is stopped. Start it twice and stop the first.
 *
 *     ./elect http://127.0.0.1:2379 one
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

enum { TTL_SECONDS = 10 };

static int run(vigil_call *call)
{
    int code = vigil_call_run(call);
    if (code != VIGIL_OK)
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    return code;
}

/* Without the lease another process may be the leader, so this one must
 * stop at once. */
static void on_lost(vigil_lease *lease, const vigil_error *error,
                    void *user)
{
    (void)lease;
    (void)user;
    fprintf(stderr, "not the leader any more: %s\n", error->text);
    _Exit(1);
}

static int lead(vigil_client *client, const char *name,
                const sigset_t *signals)
{
    vigil_call *grant = vigil_lease_grant(client, TTL_SECONDS, 0),
               *campaign = NULL;
    vigil_lease *lease = NULL;
    int got, failed = run(grant);
    if (!failed)
        failed = vigil_lease_keep(client,
                                  vigil_lease_grant_result(grant)->id,
                                  TTL_SECONDS, on_lost, NULL, &lease);
    if (!failed) {
        campaign =
            vigil_campaign(client, vigil_text("example-election"),
                           vigil_lease_id(lease), vigil_text(name));
        failed = run(campaign);
    }
    if (!failed) {
        printf("%s is the leader\n", name);
        fflush(stdout);
        sigwait(signals, &got);
        vigil_call *resign = vigil_resign(
            client, vigil_campaign_result(campaign)->leader);
        failed = run(resign);
        vigil_call_free(resign);
    }
    vigil_call_free(campaign);
    vigil_call_free(grant);
    vigil_lease_free(lease);
    return failed;
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    sigset_t signals;
    int failed;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    vigil_options_init(&options);
    if (argc > 1)
        options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    failed = lead(client, argc > 2 ? argv[2] : "me", &signals);
    vigil_client_free(client);
    return failed != 0;
}
