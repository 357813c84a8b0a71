// A shared object for loaded_library_test.cc.
extern "C" [[gnu::visibility("default")]] int counter;
int counter = 0;
