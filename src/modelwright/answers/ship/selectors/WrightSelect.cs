// Opens the variant of this package that fits the machine it runs on. Microsoft.ML.OnnxRuntime 1.23 or newer, nothing else.
//
//   using var opened = WrightSelect.Open("path/of/package");     // throws PackageRefusedException
//   opened.Session.Run(...);
//   Console.WriteLine(opened.Why);
//
// A plugin EP has to be registered first: OrtEnv.Instance().RegisterExecutionProviderLibrary("QNNExecutionProvider", path).
// `seal` is the digest that `wright ship` printed: give it, and nobody can exchange the package. A file that is not what was
// shipped is refused, and then no other variant is tried.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Security.Cryptography;
using System.Text.RegularExpressions;
using Microsoft.ML.OnnxRuntime;

namespace Wright
{
    public sealed class PackageRefusedException : Exception
    {
        public PackageRefusedException(string message) : base(message) { }
    }

    /// <summary>Device is cpu, gpu or npu. Where are options that name it, for an EP that is told its device by a word.</summary>
    public sealed class PackageVariant
    {
        public string Name, Ep, Device;
        public readonly List<KeyValuePair<string, string>> Models = new List<KeyValuePair<string, string>>();
        public readonly Dictionary<string, string> Files = new Dictionary<string, string>(), Needs = new Dictionary<string, string>(),
            Option = new Dictionary<string, string>(), Where = new Dictionary<string, string>();
    }

    /// <summary>What is here: (EP, device, version of the EP); null is not known.</summary>
    public sealed class UserMachine
    {
        public string OnnxRuntime;
        public List<(string Ep, string Device, string Version)> Devices = new List<(string, string, string)>();
    }

    public sealed class OpenedVariant : IDisposable
    {
        public InferenceSession Session;
        public PackageVariant Variant;
        public List<(string Name, string Reason)> Tried;

        public string Why => string.Join("\n", Tried.Select(one => $"not {one.Name}: {one.Reason}").Append($"took {Variant.Name}"));
        public void Dispose() => Session.Dispose();
    }

    public static class WrightSelect
    {
        private const string Cpu = "CPUExecutionProvider";

        /// <summary>The first variant that fits and opens. `anyDevice` takes a vendor's simulator too.</summary>
        public static OpenedVariant Open(string package, string component = null, string seal = null, bool anyDevice = false,
                                         Func<SessionOptions> makeOptions = null)
        {
            var machine = ThisMachine();
            var tried = new List<(string Name, string Reason)>();
            foreach (var variant in ReadSelection(package, seal))
            {
                var reason = Unfit(variant, machine, anyDevice);
                if (reason == null)
                {
                    CheckFiles(package, variant);
                    var model = component == null ? variant.Models[0].Value : variant.Models.First(one => one.Key == component).Value;
                    try
                    {
                        var options = makeOptions == null ? new SessionOptions() : makeOptions();
                        var session = OpenSession(Path.Combine(package, model), variant, anyDevice, options);
                        return new OpenedVariant { Session = session, Variant = variant, Tried = tried };
                    }
                    catch (OnnxRuntimeException error)
                    {
                        reason = "it does not open: " + error.Message;
                    }
                }
                tried.Add((variant.Name, reason));
            }
            throw new PackageRefusedException("no variant runs here: " + string.Join("; ", tried.Select(one => $"{one.Name}: {one.Reason}")));
        }

        /// <summary>The variants, best first.</summary>
        public static List<PackageVariant> ReadSelection(string package, string seal = null)
        {
            var path = Path.Combine(package, "selection.txt");
            if (seal != null && Digest(path) != seal) throw new PackageRefusedException("selection.txt is not what was shipped");
            var rows = File.ReadAllText(path).Split('\n').Where(line => line.Length > 0).Select(line => line.Split('\t')).ToList();
            if (rows.Count == 0 || string.Join(" ", rows[0]) != "wright-selection 1")
                throw new PackageRefusedException("selection.txt is of another kind than this selector reads");
            var found = new List<PackageVariant>();
            foreach (var row in rows.Skip(1))
            {
                if (row[0] == "variant") { found.Add(new PackageVariant { Name = row[1], Ep = row[2], Device = row[3] }); continue; }
                var last = found[found.Count - 1];
                if (row[0] == "model") last.Models.Add(new KeyValuePair<string, string>(row[1], Inside(row[2])));
                else if (row[0] == "file") last.Files[Inside(row[1])] = row[2];
                else if (row[0] == "needs") last.Needs[row[1]] = row[2];
                else if (row[0] == "option") last.Option[row[1]] = row[2];
                else if (row[0] == "where") last.Where[row[1]] = row[2];
            }
            return found;
        }

        public static UserMachine ThisMachine()
        {
            var env = OrtEnv.Instance();
            var found = new UserMachine { OnnxRuntime = env.GetVersionString() };
            foreach (var one in env.GetEpDevices())
            {
                one.EpMetadata.Entries.TryGetValue("version", out var version);
                found.Devices.Add((one.EpName, Kind(one), version));
            }
            var known = found.Devices.Select(one => one.Ep).ToHashSet();
            foreach (var ep in env.GetAvailableProviders().Where(name => !known.Contains(name))) found.Devices.Add((ep, null, null));
            return found;
        }

        /// <summary>Why a variant cannot run on a machine; null where it may.</summary>
        public static string Unfit(PackageVariant variant, UserMachine machine, bool anyDevice = false)
        {
            var least = variant.Needs.TryGetValue("onnxruntime", out var said) ? said : "0";
            if (Older(machine.OnnxRuntime, least)) return $"it needs onnxruntime {least}, this is {machine.OnnxRuntime}";
            var here = machine.Devices.Where(one => one.Ep == variant.Ep).ToList();
            if (here.Count == 0) return $"{variant.Ep} is not here";
            var fitting = here.Where(one => anyDevice || one.Device == null || one.Device == variant.Device).ToList();
            if (fitting.Count == 0) return $"{variant.Ep} has no {variant.Device} here";
            least = variant.Needs.TryGetValue(variant.Ep, out said) ? said : "0";
            if (fitting.All(one => one.Version != null && Older(one.Version, least)))
                return $"it needs {variant.Ep} {least}, this is {fitting[0].Version}";
            return null;
        }

        /// <summary>Every file of a variant, by its digest.</summary>
        public static void CheckFiles(string package, PackageVariant variant)
        {
            foreach (var file in variant.Files)
                if (Digest(Path.Combine(package, file.Key)) != file.Value)
                    throw new PackageRefusedException($"{file.Key} is not what was shipped");
        }

        // With this EP on one device, named; onnxruntime is not to take another one by itself.
        private static InferenceSession OpenSession(string path, PackageVariant variant, bool anyDevice, SessionOptions options)
        {
            if (variant.Ep != Cpu)
            {
                var env = OrtEnv.Instance();
                var fitting = env.GetEpDevices().Where(one => one.EpName == variant.Ep && (anyDevice || Kind(one) == variant.Device)).Take(1).ToList();
                if (fitting.Count > 0) options.AppendExecutionProvider(env, fitting, variant.Option);
                else  // one that is a part of onnxruntime, and is told its device by a word
                    options.AppendExecutionProvider(variant.Ep.Replace("ExecutionProvider", ""),
                        variant.Option.Concat(variant.Where).ToDictionary(one => one.Key, one => one.Value));
            }
            return new InferenceSession(path, options);
        }

        private static string Kind(OrtEpDevice device) => device.HardwareDevice.Type.ToString().ToLowerInvariant();

        private static string Digest(string path)
        {
            if (!File.Exists(path)) throw new PackageRefusedException($"{path} cannot be read");
            using (var sha = SHA256.Create())
            using (var file = File.OpenRead(path))
                return BitConverter.ToString(sha.ComputeHash(file)).Replace("-", "").ToLowerInvariant();
        }

        private static string Inside(string name)
        {
            if (name.StartsWith("/") || name.IndexOfAny(new[] { '\\', ':' }) >= 0 || name.Split('/').Contains(".."))
                throw new PackageRefusedException($"{name} leads out of the package");
            return name;
        }

        private static long[] Numbers(string text) =>
            Regex.Matches(text.Split('+')[0], @"\d+").Cast<Match>().Select(one => long.Parse(one.Value)).ToArray();

        // 1.31.1 is newer than 1.4; what follows a + says nothing.
        private static bool Older(string version, string least)
        {
            long[] ours = Numbers(version), theirs = Numbers(least);
            for (int place = 0; place < Math.Max(ours.Length, theirs.Length); place++)
            {
                if (place >= ours.Length || place >= theirs.Length) return ours.Length < theirs.Length;
                if (ours[place] != theirs[place]) return ours[place] < theirs[place];
            }
            return false;
        }
    }
}
