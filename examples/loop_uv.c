/*
 * A client in a loop of libuv: puts a key, prints its revision, and
 * ends.
 *
 *     cc -o loop_uv loop_uv.c \
 *         $(pkg-config --cflags --libs libvigil libuv)
 *     ./loop_uv http://127.0.0.1:2379 key value
 */
#include <stdio.h>
#include <vigil/uv.h>
#include <vigil/vigil.h>

static int exit_code = 1;

static void on_put(vigil_call *call, void *user)
{
    vigil_uv *uv = user;
    if (vigil_call_error(call)->code == VIGIL_OK) {
        printf("revision %lld\n",
               (long long)vigil_call_header(call)->revision);
        exit_code = 0;
    } else {
        fprintf(stderr, "%s\n", vigil_call_error(call)->text);
    }
    vigil_call_free(call);
    vigil_uv_stop(uv); /* nothing else is in the loop, so it ends */
}

int main(int argc, char **argv)
{
    vigil_options options;
    vigil_client *client;
    vigil_error error;
    vigil_uv uv;
    uv_loop_t *loop = uv_default_loop();

    vigil_options_init(&options);
    options.own_thread = 0;
    if (argc > 1)
        options.endpoints = argv[1];
    if (vigil_client_new(&options, &client, &error) != VIGIL_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    if (vigil_uv_start(&uv, loop, client) == 0) {
        vigil_call_start(
            vigil_put(client, vigil_text(argc > 2 ? argv[2] : "key"),
                      vigil_text(argc > 3 ? argv[3] : "value"), 0),
            on_put, &uv);
        uv_run(loop, UV_RUN_DEFAULT);
    }
    vigil_client_free(client);
    uv_loop_close(loop);
    return exit_code;
}
