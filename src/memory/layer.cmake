# The installed headers of the library.
target_include_directories(vigil_memory PUBLIC ${CMAKE_SOURCE_DIR}/include)
