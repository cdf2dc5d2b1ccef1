# The installed headers of the library.
target_include_directories(vigil_kubeclient PUBLIC ${CMAKE_SOURCE_DIR}/include)

# These tests make each of our allocations fail in turn. Their targets are created after this file is
# included.
foreach(test indexer kubeconfig cache listener)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL target_link_options kubeclient_${test}_test PRIVATE
        -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup)")
endforeach()
