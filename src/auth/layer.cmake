add_executable(auth_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/auth_bench.c)
target_link_libraries(auth_bench PRIVATE vigil_auth)
set_target_properties(auth_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
