// The C# selector about machines that are only described: as select_main.cpp.
using System;
using System.Linq;
using Wright;

public static class SelectMain
{
    public static int Main(string[] given)
    {
        try
        {
            if (given[0] == "open") { using (var opened = WrightSelect.Open(given[1], seal: given[2])) Console.WriteLine(opened.Why); return 0; }
            var variants = WrightSelect.ReadSelection(given[1]);
            for (string line; (line = Console.ReadLine()) != null;)
            {
                var cells = line.Split('\t');
                var here = new UserMachine { OnnxRuntime = cells[0] };
                foreach (var cell in cells.Skip(1))
                {
                    var parts = cell.Split('/');
                    here.Devices.Add((parts[0], parts[1] == "" ? null : parts[1], parts[2] == "" ? null : parts[2]));
                }
                Console.WriteLine(variants.FirstOrDefault(one => WrightSelect.Unfit(one, here) == null)?.Name ?? "-");
            }
            return 0;
        }
        catch (PackageRefusedException error) { Console.Error.WriteLine(error.Message); return 1; }
    }
}
