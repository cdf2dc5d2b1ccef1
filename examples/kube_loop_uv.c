/*
 * An informer in a loop of libuv, without threads: prints every change
 * of the config maps in all namespaces, until it is terminated. The
 * server is found as kubectl finds it.
 *
 *     cc -o kube_loop_uv kube_loop_uv.c \
 *         $(pkg-config --cflags --libs libvigil-kube libuv)
 *     ./kube_loop_uv
 */
#include <signal.h>
#include <stdio.h>
#include <vigil/kube.h>
#include <vigil/kube/uv.h>

/* Called in the loop. */
static void on_change(vigil_kube_handler *handler,
                      const vigil_kube_change *change, void *user)
{
    static const char *const kinds[] = {"added", "updated", "deleted"};
    (void)handler;
    (void)user;
    printf("%s %.*s\n", kinds[change->kind],
           VIGIL_ARGS(vigil_kube_object_key(change->object)));
    fflush(stdout);
}

static void on_signal(uv_signal_t *terminated, int number)
{
    (void)number;
    vigil_kube_uv_stop(terminated->data);
    uv_close((uv_handle_t *)terminated,
             NULL); /* the last in the loop */
}

static int run_loop(vigil_kube *kube)
{
    uv_loop_t *loop = uv_default_loop();
    uv_signal_t terminated;
    vigil_kube_uv uv;
    if (vigil_kube_uv_start(&uv, loop, kube) != 0 ||
        uv_signal_init(loop, &terminated) != 0)
        return 1;
    terminated.data = &uv;
    uv_signal_start(&terminated, on_signal, SIGTERM);
    uv_run(loop, UV_RUN_DEFAULT);
    return uv_loop_close(loop) != 0;
}

static vigil_kube_informer *new_informer(vigil_kube *kube)
{
    vigil_kube_informer_options options;
    vigil_kube_informer *informer;
    vigil_kube_informer_options_init(&options);
    options.target.version = "v1";
    options.target.resource = "configmaps";
    if (vigil_kube_informer_new(kube, &options, &informer) != VIGIL_OK)
        return NULL;
    return informer;
}

int main(void)
{
    vigil_kube_options options;
    vigil_kube_handler_options handler_options;
    vigil_kube *kube;
    vigil_kube_informer *informer;
    vigil_kube_handler *handler = NULL;
    vigil_error error;
    int exit_code = 1;

    vigil_kube_options_init(&options);
    options.own_thread = 0;
    if (vigil_kube_new(&options, &kube, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    vigil_kube_handler_options_init(&handler_options);
    handler_options.place = VIGIL_KUBE_HANDLER_CALLBACK;
    handler_options.fn = on_change;
    informer = new_informer(kube);
    if (informer &&
        vigil_kube_informer_add_handler(informer, &handler_options,
                                        &handler) == VIGIL_OK &&
        vigil_kube_informer_start(informer) == VIGIL_OK)
        exit_code = run_loop(kube);
    vigil_kube_handler_free(handler);
    vigil_kube_informer_free(informer);
    vigil_kube_free(kube);
    return exit_code;
}
