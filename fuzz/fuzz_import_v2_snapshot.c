/* Input: the JSON of a v2 store, as a snapshot of etcd has it. It is read or refused with a reason.
 */
#include "cost.h"

#include "import/v2/snapshot.h"

#include <stdlib.h>

FUZZ_INPUT()
{
    struct v2_tree tree;
    struct error error = {.text = ""};
    v2_tree_init(&tree, 1);
    if (v2_snapshot_read(slice_of(data, size), &tree, &error) != ST_OK && !error.text[0])
        abort();
    v2_tree_check(&tree);
    v2_tree_fini(&tree);
    return 0;
}
