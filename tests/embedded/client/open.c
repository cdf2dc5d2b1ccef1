/* The tests of libvigil in tests/client, with the store in their own process: vigil_client_new is
 * this function. */
#include <stdlib.h>
#include <vigil/embed.h>

int vigil_client_new(const vigil_options *options, vigil_client **ret_client, vigil_error *error)
{
    vigil_embedded_options embedded;
    vigil_embedded_options_init(&embedded);
    embedded.client = options;
    embedded.watch_progress_ms = 500; /* as the servers of the other tests */
    return vigil_open_embedded(getenv("VIGIL_EMBEDDED_DIR"), &embedded, ret_client, error);
}
