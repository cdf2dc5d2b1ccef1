# This test makes each of our allocations fail in turn. The test target is created after this file is
# included.
set(failing_memory -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc)
cmake_language(EVAL CODE
    "cmake_language(DEFER CALL target_link_options client_resolver_test PRIVATE ${failing_memory})")

vigil_corpus(client srv)
