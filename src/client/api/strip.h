/* Remove the client's prefix of this length from the keys of a response. */
#ifndef VIGIL_CLIENT_API_STRIP_H
#define VIGIL_CLIENT_API_STRIP_H

#include <stddef.h>

void strip_range(void *response, size_t prefix_len);
void strip_put(void *response, size_t prefix_len);
void strip_delete(void *response, size_t prefix_len);
void strip_txn(void *response, size_t prefix_len);
void strip_lease(void *response, size_t prefix_len);

#endif
