// Which line of the candidate an address of its code belongs to: reads the line table (DWARF 2 to 4) of this library.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "worker.h"

namespace harness_emulator {

namespace {

struct Row {
  uint64_t address;
  uint32_t file, line;
  bool ends;
};

struct LineTable {
  std::vector<Row> rows;
  std::vector<std::string> files;
  uint64_t base = 0;
};

class Reader {
 public:
  Reader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}
  template <typename T>
  T fixed() {
    T value{};
    if (at_ + sizeof(T) <= end_) { std::memcpy(&value, at_, sizeof(T)); }
    at_ += sizeof(T);
    return value;
  }
  uint64_t unsigned_number() {
    uint64_t value = 0;
    for (int shift = 0; at_ < end_; shift += 7) {
      const uint8_t byte = *at_++;
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128)) { break; }
    }
    return value;
  }
  int64_t signed_number() {
    int64_t value = 0;
    int shift = 0;
    uint8_t byte = 0;
    do {
      byte = fixed<uint8_t>();
      value |= int64_t(byte & 127) << shift;
      shift += 7;
    } while ((byte & 128) && at_ < end_);
    return shift < 64 && (byte & 64) ? value | -(int64_t(1) << shift) : value;
  }
  std::string text() {
    std::string value;
    while (at_ < end_ && *at_) { value += char(*at_++); }
    ++at_;
    return value;
  }
  bool is_over() const { return at_ >= end_; }
  const uint8_t* at() const { return at_; }
  void go_to(const uint8_t* at) { at_ = at; }

 private:
  const uint8_t *at_, *end_;
};

struct Program {
  uint8_t shortest, line_range, opcode_base;
  int8_t line_base;
  std::vector<uint8_t> lengths;
  uint32_t first_file;  // of this unit's files among all
};

Program read_header(Reader& reader, LineTable& table) {
  Program program{};
  const uint16_t version = reader.fixed<uint16_t>();
  const uint32_t header_bytes = reader.fixed<uint32_t>();
  const uint8_t* end = reader.at() + header_bytes;
  program.shortest = reader.fixed<uint8_t>();
  if (version >= 4) { reader.fixed<uint8_t>(); }
  reader.fixed<uint8_t>();
  program.line_base = reader.fixed<int8_t>();
  program.line_range = reader.fixed<uint8_t>();
  program.opcode_base = reader.fixed<uint8_t>();
  for (int i = 1; i < program.opcode_base; ++i) { program.lengths.push_back(reader.fixed<uint8_t>()); }
  while (!reader.text().empty()) {}
  program.first_file = uint32_t(table.files.size());
  table.files.push_back("");
  for (std::string name = reader.text(); !name.empty(); name = reader.text()) {
    const uint64_t folder = reader.unsigned_number();
    reader.unsigned_number();
    reader.unsigned_number();
    table.files.push_back(folder == 0 ? name : "/" + name);  // a candidate's files lie in the folder of the build
  }
  reader.go_to(end);
  return program;
}

void read_program(Reader& reader, const uint8_t* end, const Program& program, LineTable& table) {
  Row row{0, 1, 1, false};
  const auto emit = [&] { table.rows.push_back({row.address, program.first_file + row.file, row.line, row.ends}); };
  while (reader.at() < end) {
    const uint8_t code = reader.fixed<uint8_t>();
    if (code >= program.opcode_base) {
      const int adjusted = code - program.opcode_base;
      row.address += uint64_t(adjusted / program.line_range) * program.shortest;
      row.line += uint32_t(program.line_base + adjusted % program.line_range);
      emit();
    } else if (code == 0) {
      const uint64_t bytes = reader.unsigned_number();
      const uint8_t* next = reader.at() + bytes;
      const uint8_t extended = reader.fixed<uint8_t>();
      if (extended == 1) {
        row.ends = true;
        emit();
        row = {0, 1, 1, false};
      } else if (extended == 2) {
        row.address = reader.fixed<uint64_t>();
      }
      reader.go_to(next);
    } else if (code == 1) {
      emit();
    } else if (code == 2) {
      row.address += reader.unsigned_number() * program.shortest;
    } else if (code == 3) {
      row.line += uint32_t(reader.signed_number());
    } else if (code == 4) {
      row.file = uint32_t(reader.unsigned_number());
    } else if (code == 8) {
      row.address += uint64_t((255 - program.opcode_base) / program.line_range) * program.shortest;
    } else if (code == 9) {
      row.address += reader.fixed<uint16_t>();
    } else {
      for (int i = 0; i < program.lengths[code - 1]; ++i) { reader.unsigned_number(); }
    }
  }
}

void read_table(const uint8_t* image, size_t bytes, LineTable& table) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
  const char* names = reinterpret_cast<const char*>(image + sections[header->e_shstrndx].sh_offset);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (std::string(names + sections[i].sh_name) != ".debug_line" || (sections[i].sh_flags & SHF_COMPRESSED)) { continue; }
    const uint8_t* begin = image + sections[i].sh_offset;
    Reader reader(begin, std::min(begin + sections[i].sh_size, image + bytes));
    while (!reader.is_over()) {
      const uint32_t length = reader.fixed<uint32_t>();
      const uint8_t* end = reader.at() + length;
      uint16_t version;
      std::memcpy(&version, reader.at(), 2);
      if (version >= 2 && version <= 4) {
        const Program program = read_header(reader, table);
        read_program(reader, end, program, table);
      }
      reader.go_to(end);
    }
  }
  std::stable_sort(table.rows.begin(), table.rows.end(), [](const Row& a, const Row& b) {
    return a.address != b.address ? a.address < b.address : a.ends > b.ends;
  });
}

const LineTable& own_table() {
  static LineTable* table = [] {
    auto* made = new LineTable;
    Dl_info info{};
    if (!dladdr(reinterpret_cast<const void*>(&place_of), &info) || !info.dli_fname) { return made; }
    made->base = reinterpret_cast<uint64_t>(info.dli_fbase);
    const int file = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
    struct stat facts{};
    if (file < 0 || fstat(file, &facts) != 0) { return made; }
    void* image = mmap(nullptr, size_t(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image == MAP_FAILED) { return made; }
    read_table(static_cast<const uint8_t*>(image), size_t(facts.st_size), *made);
    munmap(image, size_t(facts.st_size));
    return made;
  }();
  return *table;
}

}

// Fills file and line where they are known. Inlined code of headers counts as the candidate's line before it.
std::string place_of(const void* code, std::string& file, int& line) {
  const LineTable& table = own_table();
  const uint64_t address = reinterpret_cast<uint64_t>(code) - table.base;
  auto row = std::upper_bound(table.rows.begin(), table.rows.end(), address,
                              [](uint64_t wanted, const Row& r) { return wanted < r.address; });
  while (row != table.rows.begin()) {
    --row;
    if (row->ends) { break; }
    const std::string& name = table.files[row->file];
    if (!name.empty() && name[0] != '/' && row->line > 0) {
      file = name;
      line = int(row->line);
      break;
    }
  }
  return file;
}

}
