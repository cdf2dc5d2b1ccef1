/*
 * Leader election by a Lease: prints when this program leads and when
 * another one does. It gives the lease back when it is terminated, so
 * that another candidate need not wait.
 *
 *     ./kube_elect LEASE IDENTITY
 */
#include <signal.h>
#include <stdio.h>
#include <vigil/kube.h>

static void on_news(vigil_kube_candidate *candidate, int news,
                    const char *leader, void *user)
{
    (void)candidate;
    (void)user;
    if (news == VIGIL_KUBE_LEADING)
        printf("leading\n");
    else if (news == VIGIL_KUBE_NOT_LEADING)
        printf(
            "not leading any more\n"); /* and so the work must stop */
    else
        printf("the leader is %s\n", leader);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    vigil_kube_leader_options options;
    vigil_kube_candidate *candidate;
    vigil_kube *kube;
    vigil_error error;
    sigset_t signals;
    int got, failed = 1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    if (vigil_kube_new(NULL, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    vigil_kube_leader_options_init(&options);
    options.name = argc > 1 ? argv[1] : "example";
    options.identity = argc > 2 ? argv[2] : NULL; /* made up */
    if (vigil_kube_candidate_new(kube, &options, on_news, NULL,
                                 &candidate) == VIGIL_OK) {
        sigwait(&signals, &got);
        vigil_kube_candidate_free(candidate);
        failed = 0;
    }
    vigil_kube_free(kube);
    return failed;
}
